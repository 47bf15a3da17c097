"""The pages of `farline serve`, `ticket` and `trust`."""

from __future__ import annotations

from farline.cli.manual.page import NETWORK_EXITS, Options, Page

_GUIDE = "docs/guide/tickets.md"
_LIMIT_FLAGS = "--limit-rate --limit-time --limit-bytes --limit-streams --limit-sessions"
_LIMITS = Options("Limits", _LIMIT_FLAGS)
_TICKET_OUTPUT = Options("Output", "--json --state-dir --keys")

PAGES = {
    "serve": Page(
        options=(
            Options("Addresses", "--listen -p --data-ports --single-port"),
            Options(
                "Access",
                "--write --read --anonymous",
                "--require-cipher --keep-owners --anonymous-rate --anonymous-time",
            ),
            Options("Printed tickets", "--host --ticket-lifetime"),
            Options(
                "Limits of printed tickets",
                "",
                _LIMIT_FLAGS,
            ),
            Options(
                "Clients of iperf3",
                "--iperf3",
                "--iperf3-only --iperf3-sessions --iperf3-per-address --iperf3-streams"
                " --iperf3-rate --iperf3-time --iperf3-bytes --iperf3-key --iperf3-users"
                " --iperf3-skew --iperf3-pkcs1",
            ),
            Options("Server", "--max-sessions -1", "--stop-after --state-dir --keys --metrics"),
            Options("Output", "--json"),
        ),
        examples=(
            (
                "Serve measurements on loopback, without tickets",
                "farline serve --anonymous --listen 127.0.0.1",
            ),
            ("Accept files into a folder", "mkdir -p incoming && farline serve --write incoming"),
            ("Answer only clients of iperf3", "farline serve --iperf3-only"),
            ("Serve on one port behind a firewall", "farline serve --single-port -p 5470"),
        ),
        see_also=("farline probe", "farline copy", "farline ticket", _GUIDE),
    ),
    "ticket": Page(
        examples=(
            (
                "Make a ticket for measurements to this host",
                "farline ticket make host.example.org --lifetime 8h",
            ),
            ("List the tickets of this server", "farline ticket list"),
        ),
        see_also=("farline serve", "farline trust", _GUIDE),
    ),
    "ticket make": Page(
        options=(
            Options("Ticket", "--lifetime --write --read -p"),
            _LIMITS,
            _TICKET_OUTPUT,
        ),
        examples=(
            (
                "Allow measurements for a working day",
                "farline ticket make host.example.org --lifetime 8h --limit-rate 1Gbit",
            ),
            (
                "Allow reading files below a folder",
                "farline ticket make host.example.org --read /tmp",
            ),
        ),
        see_also=("farline ticket list", "farline ticket revoke", _GUIDE),
    ),
    "ticket list": Page(
        options=(_TICKET_OUTPUT,),
        examples=(("List the tickets of this server", "farline ticket list"),),
        see_also=("farline ticket show", "farline ticket revoke", _GUIDE),
    ),
    "ticket show": Page(
        options=(_TICKET_OUTPUT,),
        see_also=("farline ticket list", _GUIDE),
    ),
    "ticket revoke": Page(
        options=(Options("Tickets", "--all"), _TICKET_OUTPUT),
        examples=(("Revoke all tickets of this server", "farline ticket revoke --all"),),
        see_also=("farline ticket list", _GUIDE),
    ),
    "trust": Page(
        options=(Options("Actions", "--list --forget"), Options("Output", "--json")),
        examples=(
            ("List known servers", "farline trust --list"),
            ("Forget a server whose key has changed", "farline trust --forget host.example.org"),
        ),
        exits=(NETWORK_EXITS[0],),
        see_also=("farline ticket", "farline probe", _GUIDE),
    ),
}
