"""Campaigns: a plan becomes a grid of settings, the settings become runs, in an order that is fair.

```text
plan.toml / flags ─► plan.Plan ─► settings.expand ─► Campaign ─► journal (plan and seed, kept)
                                                        │
                     store (what was done) ─► replay ─► machine ─► instructions ─► shell ─► measure
                                                        ▲                            │
                                                        └───────── events ◄──────────┘
```

What it does: reads plans and refuses what is wrong in them before anything runs; orders runs in
randomised complete blocks, interleaved with a reference setting; repeats settings until the
confidence interval of the mean is precise enough or a cap is reached; goes on after any
interruption.
What it must not do: print, parse command lines, touch sockets. `machine`, `rules`, `estimate` and
`results` do no I/O and know no clock.

In: a plan, and a function that measures one run. Out: runs in the store, and how each setting
ended.

A run's identity is campaign + setting + block + slot + attempt; it stands in the run's labels. The
store is the truth about what was done; the journal holds only the plan and the seed. To resume, the
machine is asked the same questions as before and is answered from the store as far as it reaches.

Start with job.py (`CampaignJob`), plan.py, then machine.py, then shell.py. One run by itself is
measure.py.
"""
