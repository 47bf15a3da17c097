"""The service: estimates, reservations, transfers and pages for people who use no shell.

What it does: answers `/v1` (REST, described by `/v1/openapi.json`) and draws pages over what the
other rooms know and do. Transfers run in processes of their own (`keeper`), which outlive the
service; whoever starts it again finds them by their folders (`job_folder`). Reservations, jobs,
hashes of tokens and the audit stand in one SQLite file (`database`); measurements stay in the
store, which is only read.

What it must not do: show a ticket or a token in a page, a log or an address; measure, choose or
estimate by itself; reserve anything on a network. It prints nothing.

In: `Settings` (folders, store, sites, limits), requests. Out: answers, pages, processes.

The parts, each with what it needs handed to it and nothing else:
`access` (who may do what), `allowance` (how often), `audit` (what was done), `endpoints` (names for
folders, hosts and tickets), `booking` (pure: what is free on a path) and `reservations` on it,
`transfer_machine` (pure: what to do next with a transfer) and `runner` on it, `event_feed` (what a
job tells, to many listeners), `knowledge` (what the store says, read once).
`routes` has the REST of each subject, `pages` what people see.

Start with `app.create_app`, then `reservations` and `runner`. FastAPI and what it brings are
imported here alone: `pip install farline[portal]`.
"""
