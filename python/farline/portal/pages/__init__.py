"""Pages for people: drawn here, whole without scripts; scripts add what moves.

`site` mounts them; `looking`, `asking` and `moving` have what each shows, `words` how figures and
times are written; in `templates` and `static` is what a browser gets. Texts of others are escaped
by the templates, and no page has a style or a script of its own: the policy refuses them.
"""
