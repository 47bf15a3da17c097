"""Throughput profiles: frames in, values out.

What it does: computes what one run comes to (`summary`: total and steady
throughput, warm-up by MSER-5), how throughput responds to parameters over
many runs (`response`), how settings compare (`compare`), what RBUDP's blasts
came to (`blasts`), and what a host can take in (`application_bound`). And the
analytics of Rao et al. 2018: what an infrastructure delivers over round-trip time.

What it must not do: I/O of any kind, drawing, choosing what to run next. Its
functions are pure: the same rows give the same values.

In: a run's record and its sample columns, rows of the store, or cells. Out: a
`Summary` document, points with confidence intervals, comparisons, profiles and
their coefficients.

```text
rows ──► cells ──► ThroughputProfile ─┬─► coefficients: with cautions, running, regions
(store's table)  near RTTs merged     ├─► calculus: evaluate, restrict, −, /, compare
                                      └─► method_profile (bootstrap)
        interpolation: straight lines between knots as weights of means, and their errors
```

Start with `summary.summarise` for one run, `response.response` for many, and
`throughput_profile.ThroughputProfile` for analytics; docs/design/analytics.md
has the definitions. `series` puts sample rows of several streams on one clock.
"""
