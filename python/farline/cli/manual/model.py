"""The pages of `farline model`."""

from __future__ import annotations

from farline.cli.manual.page import Options, Page

_EXAMPLE = (
    "Predict the throughput of a blast with 7 % loss",
    "farline model rbudp --payload 600MB --rate 610Mbit --rtt 110ms --loss 7%",
)

PAGES = {
    "model": Page(examples=(_EXAMPLE,), see_also=("docs/guide/rbudp-model.md",)),
    "model rbudp": Page(
        options=(
            Options(
                "Blast",
                "--payload --rate --rtt --loss --packet --in-flight",
                "--overhead --settle --interval --initial-window",
            ),
            Options("Models", "--printed --passes --early"),
            Options("Answers", "--efficiency --curve --beside"),
            Options("Comparison with runs", "--against --campaign --store"),
            Options("Output", "--plot --json"),
        ),
        examples=(
            _EXAMPLE,
            ("Print throughput over the payload",
             "farline model rbudp --payload 600MB --rate 610Mbit --rtt 110ms --curve payload"),
        ),
        see_also=("farline probe --transport rbudp --help", "docs/guide/rbudp-model.md"),
    ),
}  # fmt: skip
