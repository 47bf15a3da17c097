"""Measures the path emulator from outside: what the benches emulator-* are made of.

What it does: puts real traffic through testbeds and compares what arrives with what the topology
states. Nothing here trusts the emulator where a host's own kernel can tell: round trips, rates,
losses and order come from receive timestamps and numbered datagrams inside the hosts. The
emulator's own samples are used for what only it can know (queues), and are compared with the
hosts' view elsewhere. What it must not do: correct a figure by what is known about the emulator;
choose among valid runs.

In: `farline.testbeds`, topologies made in `beds`. Out: `figures.Figure`, a row each, kept in
`benches/results/` by `results` and written into docs/design/emulator.md by `table`.

Where to start: `figures` (what a row is and when it has failed), then a folder of `cases`.

- `pinger`, `blaster`, `catcher`: programs that run inside hosts, by themselves;
- `traffic`: starts them and iperf3, and reads what they say;
- `chance`, `sawtooth`, `delivery`, `ledger`: series to figures, pure;
- `beds`, `runs`: topologies; runs with stamps, repeated while the emulator itself says they are
  invalid.
"""
