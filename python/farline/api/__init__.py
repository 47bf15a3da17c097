"""The public API: what `import farline` gives to scripts, notebooks and programs.

What it does: begins jobs (`probe`, `profile`, `copy`, `tune`), serves (`serve`), makes testbeds,
and asks of measurements (`open_store`, `ingest`, `throughput_profile`, `explain`, `report`). A job
runs in a thread of its own: iterate over its events, `wait` for it, `await` it, or `cancel` it.

What it must not do: print, parse a command line, decide anything that a room below decides.

In: hosts, tickets, files and options under the names of plans. Out: jobs and values that draw
themselves in a notebook; tables are `pyarrow.Table`, which pandas, polars and DuckDB take without
a copy; failures are `farline.errors`.

Everything here is reached as `farline.NAME` and imported when it is first used. Start with
job.py, then run.py.
"""
