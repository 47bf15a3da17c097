"""Throughput profiles: frames in, values out.

What it does: computes what one run comes to (`summary`: total and steady
throughput, warm-up by `warmup`), how throughput responds to parameters over
many runs (`response`), and how settings compare (`compare`).

What it must not do: I/O of any kind, drawing, choosing what to run next. Its
functions are pure: the same rows give the same values.

In: a run's record and its sample columns, or rows of the store. Out: a
`Summary` document, points with confidence intervals, comparisons.

Start with `summary.summarise` for one run and `response.response` for many;
`series` puts sample rows of several streams on one clock.
"""
