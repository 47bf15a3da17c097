"""Every figure, table and number of the papers that farline builds on, by one command.

What it does: an entry for each of them (`Item`), with what the paper claims, how farline comes to
the same (a plan of `plans/`, or a computation), what is scaled and why that is allowed, assertions
in code, and a verdict: it agrees, it differs and why, or it cannot be had here and why.

What it must not do: measure by itself. Campaigns are run by `farline profile` and `farline
fairness` in processes of their own, with the very command that the page of the item shows.

In: names of items, a scale (`quick` or `full`), a folder. Out: a result (JSON) for each item, the
campaigns in a store of their own, and the gallery: a page per item and an index, which open
offline.

```text
items/*      Item: claim, sources, judge           one file per paper
sources      Source: a plan and what a scale changes in it ─► a plan file and a command
runner       what is missing is measured ─► judged ─► compared with the last time ─► kept
evidence     Check, Curve, Picture, Evidence ─► verdict
budget       how far two figures may be apart and still be the same
pages        results ─► values of farline.plots.gallery
```

Start with item.py, then items/rbudp.py.
"""
