"""Drawing: values in, figures and one page out.

What it does: draws control-response curves (`response_figure`), runs over time
(`series_figure`), repetitions (`distribution_figure`), heat maps (`heat_figure`) and what limited
the runs (`figures`) as PNG and SVG for a paper; renders the report, one HTML file that
carries its styles, scripts and data and needs no network (`page`, `payload`, `templates/`,
`static/`); says the results in words (`findings`). The same of an analysis of many sites: profiles
over round-trip time, what is used of them, site matrices and causes (`analysis`).

What it must not do: analyse. Means, intervals and comparisons come from `farline.profiles`; a
figure decides where ink goes and nothing else. It never shows a failed run as a zero, and never
averages points of different settings into one.

In: the rows and samples of one campaign, which only `data` reads from the store; or the values of
an analysis, all computed before (`analysis_values`). Out: files under the folder that the caller
names.

```text
store ─► data ─► profiles.response, profiles.compare
          │
          ├─► curves, axes, series, labels (pure values) ─► *_figure ─► figures ─► figures/*.png|svg
          └─► findings, tables, payload ─► page ─► report.html

analysis_values ─┬─► rtt_axis ─► *_figure ─► analysis_figures ─► figures/*.png|svg
                 └─► analysis_words, analysis_tables, analysis_payload ─► analysis_page ─► a page
```

Start with report.py, then data.py; for an analysis with analysis.py, then analysis_values.py. How
every figure looks is in style.py, how a parameter lies on an axis in axes.py, how a page is put
together and sealed in page_parts.py.
"""
