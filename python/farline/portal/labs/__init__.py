"""Labs of the page Learn: a file for each, and beside it what was measured once with its plan.

`NAME.toml` has the texts, the plan and the question; `NAME.json` the bars of a real run of that
plan, with when and on what it was run. `farline.portal.lessons` reads them. Names begin with their
place in the course.
"""
