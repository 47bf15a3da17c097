"""Throughput profiles: frames in, values out.

What it does: computes what one run comes to (`summary`: total and steady
throughput, warm-up by `warmup`), how throughput responds to parameters over
many runs (`response`), how settings compare (`compare`), what RBUDP's blasts
came to (`blasts`), and what a host can take in (`application_bound`).

What it must not do: I/O of any kind, drawing, choosing what to run next. Its
functions are pure: the same rows give the same values.

In: a run's record and its sample columns, or rows of the store. Out: a
`Summary` document, points with confidence intervals, comparisons.

Start with `summary.summarise` for one run and `response.response` for many;
`series` puts sample rows of several streams on one clock.
"""
