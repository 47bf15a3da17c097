"""Measures RBUDP from outside and beside its model: what the benches rbudp-* are made of.

What it does: runs `farline probe --transport rbudp` on loopback and between the hosts of testbeds,
reads blasts out of its records, and holds them against `farline.models.rbudp*`, against stated
rates, and against TCP. What it must not do: take the sender's word where the receiving host's
kernel can tell (paces and bursts come from its timestamps); choose among valid runs.

In: nothing but the machine. Out: rows as `_emulator.figures` has them.

- `probing`: one run and what its record says;
- `cells`, `against_model`: rbudp-model, time and passes of blasts against the corrected model;
- `loopback`: rbudp-speed, how fast and at what cost each receiver is;
- `pacing`, `sniffer`: rbudp-speed, whether data arrive at the stated rate, and in what bursts;
- `lossy`: rbudp-speed, 2 GB over a long lossy path beside one cubic stream.

Where to start: `against_model.rows`, then `cells`.
"""
