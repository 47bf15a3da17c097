"""Analytical models: the throughput that a transport can reach on a path.

What it does: turns a stated case (payload, rate, round-trip time, loss) into a prediction with
its parts, a distribution where chance decides, curves, the payload that a wanted efficiency
needs, and measured blasts beside what was predicted for them. RBUDP (He et al. 2002, section 4),
its equations as printed and corrected; TCP's rates, windows and dedicated lines as functions of
RTT; throughput over streams, stripes and nodes; models fitted to a throughput profile (Rao et al.
2018), and which of them predicts best.

What it must not do: I/O of any kind, drawing, reading records; correct a published
formula in silence. What is corrected stands beside what was printed, and `rbudp_gaps` says in
words where the two part. Its functions are pure: the same case gives the same values.

In: a `Case`, arrays of payloads, rates, RTTs and means, records of runs. Out: frozen values and
fitted models in bits per second, bytes and seconds.

```text
Case ─┬─► rbudp_printed.printed                      equations 1 to 6 as they stand
      └─► rbudp_corrected.by_passes, early           passes by chance, reports, stragglers
              ├─► rbudp_curves    curves, payload for an efficiency, where two curves cross
              ├─► rbudp_measured  blasts of a record beside the model
              └─► rbudp_gaps      where the printed equations mislead
```

```text
tcp_steady, window_bound, dedicated_channel                  formulas over arrays
stream_curves, stream_fit, end_to_end, transfer_knobs        streams, stripes, nodes, files at once
profile_model.Regressor ◄─ dedicated_fit, sigmoid_pair, small ones in profile_models
      │                                              fit (with `fitting`), predict, in words
      └─► profile_models.MODELS ─► model_choice.choose, best_subset
```

Start with rbudp.py or profile_model.py. Derivations are in docs/design/rbudp-model.md and
docs/design/profile-models.md.
"""
