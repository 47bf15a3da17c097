"""The pages of `farline portal`."""

from __future__ import annotations

from farline.cli.manual.page import Options, Page

_GUIDE = "docs/guide/portal.md"
_STATE = Options("Output", "--state-dir --json")

PAGES = {
    "portal": Page(
        examples=(
            ("Start it for this host alone, and print the address to open", "farline portal start"),
            (
                "Make a token for a colleague",
                "farline portal token --user ada --scope see --scope estimate --scope move",
            ),
            (
                "Let users copy from a folder of this host",
                "farline portal endpoint add scratch /tmp",
            ),
        ),
        see_also=("farline estimate", "farline copy", _GUIDE),
    ),
    "portal start": Page(
        options=(
            Options("Address", "--listen --unix --host --https"),
            Options("Service", "--sites --oidc --reserve-with --parallel"),
            Options("Output", "--state-dir --store --json"),
        ),
        examples=(
            ("Start it for this host alone", "farline portal start"),
            (
                "Start it behind a reverse proxy that speaks https",
                "farline portal start --unix /run/portal.sock --host portal.example.org --https",
            ),
        ),
        see_also=("farline portal token", "farline portal endpoint", _GUIDE),
    ),
    "portal token": Page(
        options=(
            Options("New token", "--user --scope --lifetime"),
            Options("Known tokens", "--list --revoke"),
            _STATE,
        ),
        examples=(
            (
                "Make a token that only reads, for a day",
                "farline portal token --scope see --lifetime 1d",
            ),
            ("List the valid tokens", "farline portal token --list"),
        ),
        exits=((4, "The token to revoke is unknown, or was revoked before."),),
        see_also=("farline portal", _GUIDE),
    ),
    "portal endpoint": Page(
        examples=(("List the registered places", "farline portal endpoint list"),),
        see_also=("farline portal", "farline ticket", _GUIDE),
    ),
    "portal endpoint add": Page(
        options=(Options("Output", "--state-dir"),),
        examples=(
            ("A folder of this host", "farline portal endpoint add scratch /tmp"),
            (
                "A folder of another host, over ssh",
                "farline portal endpoint add archive user@dtn.example.org:/archive",
            ),
        ),
        see_also=("farline portal endpoint list", "farline portal endpoint remove", _GUIDE),
    ),
    "portal endpoint list": Page(
        options=(_STATE,),
        examples=(("List the registered places", "farline portal endpoint list"),),
        see_also=("farline portal endpoint add", _GUIDE),
    ),
    "portal endpoint remove": Page(
        options=(Options("Output", "--state-dir"),),
        examples=(("Forget a place", "farline portal endpoint remove scratch"),),
        see_also=("farline portal endpoint add", _GUIDE),
    ),
    "portal backup": Page(
        options=(Options("Output", "--state-dir"),),
        examples=(("Write a copy", "farline portal backup portal-copy.sqlite"),),
        see_also=("farline portal", _GUIDE),
    ),
}
