"""Points and groups of options: what they become, what is refused, and that nothing is lost."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from farline.campaign.journal import new_journal, read_journal, write_journal
from farline.campaign.machine import Machine
from farline.campaign.plan import Plan, load_plan, plan_from_document
from farline.campaign.replay import done_in_store, replay
from farline.campaign.settings import expand, make_campaign
from farline.campaign.shell import Shell
from farline.errors import SpecError
from farline.spec.options import Grid
from farline.store import Store
from tests.support.driving import FakeMeasure, drive, noisy, validate

BUFFERS = ["tcp.send_buffer_bytes", "tcp.receive_buffer_bytes"]
GROUP = {"buffer_bytes": {"options": BUFFERS, "values": "128K..512K*2"}}
POINTS = [
    {"block_bytes": "64K", "tcp": {"congestion_control": "reno"}},
    {"name": "big", "block_bytes": "1M"},
]
TABLE_1 = Path(__file__).parents[3] / "plans" / "tpg-table1.toml"


def plan(**parts: Any) -> Plan:
    return plan_from_document(parts)


def test_options_of_a_group_have_one_value_in_every_run() -> None:
    settings = expand(plan(grid={"streams": [1, 2]}, together=GROUP), validate)
    assert [dict(setting.varied) for setting in settings] == [
        {"streams": streams, "buffer_bytes": size}
        for streams in (1, 2)
        for size in (131072, 262144, 524288)
    ]
    for setting in settings:
        sizes = {setting.spec["tcp"][path.partition(".")[2]] for path in BUFFERS}
        assert sizes == {setting.varied["buffer_bytes"]}


def test_points_are_settings_in_the_order_of_the_list() -> None:
    settings = expand(plan(fixed={"tcp": {"congestion_control": "bbr"}}, point=POINTS), validate)
    assert [dict(setting.varied) for setting in settings] == [
        {"point": 1, "block_bytes": 65536, "tcp.congestion_control": "reno"},
        {"point": "big", "block_bytes": 1 << 20},
    ]
    # What a point does not say stands in [fixed].
    assert [s.spec["tcp"]["congestion_control"] for s in settings] == ["reno", "bbr"]


def test_points_are_combined_with_the_grid_and_with_groups() -> None:
    settings = expand(plan(grid={"streams": [1, 2]}, together=GROUP, point=POINTS), validate)
    assert len(settings) == 2 * 2 * 3
    names = [setting.varied["point"] for setting in settings]
    assert names == [1] * 6 + ["big"] * 6


@pytest.mark.parametrize(
    ("parts", "line"),
    [
        ({"together": [1]}, r"together: must be tables \[together.NAME\]"),
        ({"together": {"a": 3}}, r"together a: must be a table \[together.a\]"),
        ({"together": {"Big one": {}}}, r"\[together.Big one\]: the name must be"),
        ({"together": {"streams": {}}}, r"\[together.streams\]: the name must be"),
        ({"together": {"tcp": {}}}, r"\[together.tcp\]: the name must be"),
        *(
            ({"together": {name: {}}}, f"{name} is a column of the results")
            for name in ("status", "setting", "reference", "total_bps")
        ),
        ({"together": {"a": {"options": ["path.rtt_s"], "values": [1]}}}, r"belongs in \[path\]"),
        ({"together": {"a": {"options": ["sctp.x"], "values": [1]}}}, "no section sctp; .*tcp"),
        ({"together": {"a": {"option": []}}}, r"option: unknown; allowed: options, values"),
        ({"together": {"a": {"options": "streams"}}}, "options: must be a list of options"),
        ({"together": {"a": {"options": ["strems"], "values": [1]}}}, "strems: unknown"),
        ({"together": {"a": {"options": BUFFERS}}}, "values: missing"),
        ({"together": {"a": {"options": BUFFERS, "values": [1, 1]}}}, "1 is listed twice"),
        (
            {"together": {"a": {"options": [BUFFERS[0], "streams"], "values": [1]}}},
            "streams is not a quantity such as tcp.send_buffer_bytes",
        ),
        (
            {"together": {"a": {"options": ["block_bytes", "tcp.mss_bytes"], "values": ["1M"]}}},
            r"\[together.a\] values: 1048576 is out of range; allowed: 88 to 32767",
        ),
        (
            {"together": {name: {"options": BUFFERS, "values": [1]} for name in "ab"}},
            r"\[together.b\] options .*: is already varied in \[together.a\] options",
        ),
        (
            {"together": GROUP, "grid": {"tcp": {"send_buffer_bytes": [1]}}},
            r"tcp.send_buffer_bytes: is already varied in \[grid\]",
        ),
        ({"point": {"streams": 1}}, r"point: must be a list of tables \[\[point\]\]"),
        ({"point": [{"strems": 1}]}, r"\[point 1\] strems: unknown; did you mean streams"),
        ({"point": [{"tcp": {"x": 1}}]}, r"\[point 1.tcp\] x: unknown"),
        ({"point": [{"title": "a"}]}, r"\[point 1\] title: cannot be varied"),
        ({"point": [{"path": {"rtt_s": 1}}]}, r"\[point 1\] path.rtt_s: belongs in .*\[path\]"),
        ({"point": [{"name": True}]}, "name: True is not a whole number"),
        ({"point": [{"name": "", "streams": 1}]}, "name: '' is not a whole number"),
        ({"point": [{"name": 2, "streams": 1}, {"streams": 2}]}, "name: 2 is listed twice"),
        ({"point": [{"streams": 1}, {"streams": 1}]}, r"\[\[point\]\] 2: the same as 1"),
        ({"point": [{"streams": 1}], "grid": {"streams": [1]}}, r"is already varied in \[grid\]"),
        ({"point": [{"streams": 300}]}, r"\[point 1\] streams: 300 is out of range"),
    ],
)
def test_what_is_wrong_is_named_with_what_is_allowed(parts: dict[str, Any], line: str) -> None:
    with pytest.raises(SpecError, match=line) as refusal:
        plan(**parts)
    assert "\n" not in refusal.value.message


def test_options_that_apply_to_no_run_are_refused() -> None:
    udp = {"size_bytes": {"options": ["udp.packet_bytes"], "values": [1000, 2000]}}
    with pytest.raises(SpecError, match=r"\[together.size_bytes.udp\] packet_bytes: applies to no"):
        expand(plan(together=udp), validate)
    with pytest.raises(SpecError, match=r"\[point 1.udp\] gso: applies to no run"):
        expand(plan(point=[{"udp": {"gso": True}}]), validate)


def test_points_may_have_transports_of_their_own() -> None:
    points = [
        {"transport": "tcp", "tcp": {"mss_bytes": 1400}},
        {"transport": "udp", "udp": {"packet_bytes": 1400}},
    ]
    tcp, udp = expand(plan(point=points, fixed={"tcp": {"no_delay": True}}), validate)
    assert (tcp.spec["transport"], tcp.spec["tcp"]["mss_bytes"]) == ("tcp", 1400)
    assert (udp.spec["transport"], udp.spec["udp"]) == ("udp", {"packet_bytes": 1400})
    wrong = [{"transport": "tcp", "udp": {"packet_bytes": 1400}}]
    with pytest.raises(SpecError, match=r"\[point 1.udp\] packet_bytes: applies to no run"):
        expand(plan(point=wrong, grid={"streams": [1]}), validate)


def test_a_group_is_not_shown_where_it_does_not_apply() -> None:
    settings = expand(plan(grid={"transport": ["tcp", "null"]}, together=GROUP), validate)
    assert [dict(s.varied) for s in settings if s.spec["transport"] == "null"] == [
        {"transport": "null"}
    ]


def test_the_reference_may_name_a_group_and_a_point() -> None:
    made = plan(
        campaign={"reference": {"buffer_bytes": "256K", "point": "big"}},
        together=GROUP,
        point=POINTS,
    )
    reference = make_campaign(made, validate).reference
    assert reference is not None
    assert reference.varied == {"point": "big", "block_bytes": 1 << 20, "buffer_bytes": 262144}
    assert reference.key in {setting.key for setting in expand(made, validate)}
    absent = plan(campaign={"reference": {"point": 7}}, point=POINTS)
    with pytest.raises(SpecError, match="reference: no point 7; points: 1, big"):
        make_campaign(absent, validate)


def test_a_command_line_wins_over_points_and_groups() -> None:
    made = plan(
        campaign={"reference": {"buffer_bytes": "256K", "point": "big"}},
        together=GROUP,
        point=POINTS,
        figure=[
            {"name": "a", "x": "buffer_bytes", "curves": "point", "panels": [[1], ["big"]]},
            {"name": "b", "x": "point", "curves": "buffer_bytes", "panels": [["128K"]]},
            {"name": "c", "x": "point"},
        ],
    )
    one = made.with_grid(Grid({"tcp": {"send_buffer_bytes": 1 << 20}}))
    assert one.together["buffer_bytes"].options == (BUFFERS[1],)
    none = one.with_grid(Grid({"tcp": {"receive_buffer_bytes": 1 << 20}}))
    assert not none.together
    assert none.reference == {"point": "big"}
    assert [figure.name for figure in none.figures] == ["c"]
    same = made.with_grid(Grid({"block_bytes": 4096, "tcp": {"congestion_control": "cubic"}}))
    assert not same.points and same.reference == {"buffer_bytes": 262144}
    for changed in (one, none, same):
        assert plan_from_document(changed.document()) == changed
        make_campaign(changed, validate)


def test_two_points_that_are_one_run_are_refused() -> None:
    stated = plan(point=[{"name": "usual"}, {"name": "said", "transport": "tcp", "streams": 1}])
    with pytest.raises(SpecError, match=r"\[\[point\]\] said: the same run as usual"):
        expand(stated, lambda document: {"transport": "tcp", "streams": 1, **document})


def test_the_reference_leaves_out_what_a_command_line_states() -> None:
    made = plan(
        campaign={"reference": {"streams": 2, "block_bytes": 4096}}, grid={"streams": [1, 2]}
    )
    assert made.with_grid(Grid({"block_bytes": 8192})).reference == {"streams": 2}
    assert made.with_grid(Grid({"streams": 1, "block_bytes": 8192})).reference == "first"


def test_points_that_a_command_line_makes_the_same_are_one() -> None:
    points = [{"streams": 1, "block_bytes": 1}, {"streams": 1, "block_bytes": 2}, {"streams": 2}]
    changed = plan(point=points).with_grid(Grid({"block_bytes": 4096}))
    assert [point.name for point in changed.points] == [1, 3]
    assert plan_from_document(changed.document()) == changed


def test_a_campaign_of_points_goes_on_where_it_was(tmp_path: Path) -> None:
    made = plan(campaign={"repetitions": 3, "seed": 1}, together=GROUP, point=POINTS)
    campaign = make_campaign(made, validate)
    store, numbers = Store(tmp_path), itertools.count()
    write_journal(store, new_journal(campaign, "192.0.2.7:5470"))
    whole, _ = drive(Machine(campaign), noisy(0.1))
    cells = []
    for stop_after in (4, 10**6):
        kept = read_journal(store, campaign.id).campaign
        assert kept == campaign
        machine = replay(kept, done_in_store(store, campaign.id))
        measure = FakeMeasure(store, campaign.id, noisy(0.1), numbers)

        def enough(done: FakeMeasure = measure, limit: int = stop_after) -> bool:
            return len(done.cells) >= limit

        stop = Shell(machine, measure, lambda _: None, enough).run()
        cells += measure.cells
    assert stop.reason == "finished" and cells == whole


def test_table_1_of_the_paper_is_shipped() -> None:
    """Yun et al. 2015, Table I: bytes of packet and block, and four buffers in MiB."""
    points = load_plan(TABLE_1).points
    mib = 1 << 20
    assert [point.name for point in points] == list(range(1, 11))
    assert [
        (
            p.values["udt.packet_bytes"],
            p.values["block_bytes"],
            *(p.values[f"udt.{name}_buffer_bytes"] // mib for name in
              ("send", "udp_send", "receive", "udp_receive")),
        )
        for p in points
    ] == [
        (1472, 1455, 10, 1, 10, 1),
        (1472, 8955, 10, 1, 10, 1),
        (1472, 65536, 10, 1, 10, 1),
        (1472, 89559, 10, 1, 10, 1),
        (1472, 89559, 1, 1, 1, 1),
        (1472, 179119, 1, 1, 1, 1),
        (8972, 89559, 1, 1, 1, 1),
        (8972, 179119, 1, 1, 1, 1),
        (8972, 179119, 16, 16, 16, 16),
        (8972, 179119, 32, 32, 32, 32),
    ]  # fmt: skip
