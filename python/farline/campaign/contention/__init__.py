"""Contention: who shares a line how, measured alone and together (Yu et al. 2014).

```text
plan.toml / flags ─► plan ─► order ─► job ─► records with labels ─► trials ─► farline.fairness
                                       │                              ▲
                      a SharedLine ────┘          store, on resume ───┘
```

What it does: reads plans of fairness measurements (`plan`, `expected`), puts their trials in an
order that is fair (`order`), runs each side of a trial in a thread of its own and keeps both as
records with labels and a window of time (`job`), and reads trials back from records (`trials`).

What it must not do: know testbeds. What carries the trials answers to `job.SharedLine`; who joins
the two is `farline.api.contention`.

In: a plan and a line. Out: records in the store, and `outcome.Outcome`. Start with plan.py, job.py.
"""
