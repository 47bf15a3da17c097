"""Reading what iperf3 and iperf 2 print: figures, failures, and which test a line is of."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given as examples
from hypothesis import strategies as st

from tests.support.draws import SAME_FOLDER, draws
from tests.unit.formats.logs import facts, given, sample


def test_iperf3_in_text_gives_what_the_receiver_got_of_all_streams() -> None:
    rows, tally = sample("iperf3-text.txt")
    tcp, reverse, there, back, udp, asked, verbose, refused = rows
    assert facts(tcp, "rate_bps", "streams", "retransmits") == (3.16e9, 1, 0)
    assert facts(tcp, "from_host", "to_host", "transport") == ("10.9.1.1", "10.9.1.2", "tcp")
    assert tcp["bytes"] == 378 << 20
    assert facts(reverse, "from_host", "rate_bps", "streams", "retransmits") == (
        "10.9.1.2", 2.53e9, 2, 2,
    )  # fmt: skip
    assert facts(there, "from_host", "rate_bps", "streams") == ("10.9.1.1", 199e6, 2)
    assert facts(back, "from_host", "rate_bps", "streams") == ("10.9.1.2", 201e6, 2)
    assert facts(udp, "transport", "rate_bps", "retransmits") == ("udp", 71.4e6, None)
    assert asked["rate_bps"] == pytest.approx(2.07e9)
    assert facts(verbose, "congestion_control", "block_bytes") == ("bbr", 131072)
    assert verbose["started_at"] == datetime(2026, 11, 25, 14, 23, 7)
    assert facts(refused, "complete", "code") == (
        False,
        "unable to connect to server: Connection refused",
    )
    assert tally.skipped["the other end's output"] > 0 and tally.malformed == 0


def test_an_iperf3_server_says_whether_it_sent() -> None:
    rows, _ = sample("iperf3-server.txt")
    assert [facts(row, "from_host", "rate_bps", "streams") for row in rows] == [
        ("10.9.1.1", 3.24e9, 1),
        ("10.9.1.1", 3.48e9, 1),
        ("10.9.1.2", 2.85e9, 2),
        ("10.9.1.2", 3.55e9, 2),
    ]


def test_iperf2_gives_the_sum_of_the_streams_of_each_direction() -> None:
    rows, tally = sample("iperf2.txt")
    three, verbose, udp, reverse, refused, summed, there, back, two_udp = rows
    assert facts(three, "streams", "congestion_control", "bytes") == (3, "cubic", 1714 << 20)
    assert three["rate_bps"] == pytest.approx(14.28e9, rel=1e-3)
    assert facts(verbose, "retransmits", "block_bytes", "rtt_ms") == (31, 131072, 0.004)
    assert verbose["started_at"] == datetime(2026, 11, 25, 22, 50)
    assert facts(udp, "transport", "rate_bps", "congestion_control") == ("udp", 52.4e6, None)
    assert facts(reverse, "from_host", "to_host") == ("198.51.100.2", "192.0.2.1")
    assert facts(refused, "complete", "rate_bps") == (False, None)
    assert facts(summed, "streams", "rate_bps") == (2, 64.5e9)
    assert facts(there, "from_host", "rate_bps") == ("192.0.2.1", 5.25e9)
    assert facts(back, "from_host", "rate_bps") == ("198.51.100.2", 2.51e9)
    assert facts(two_udp, "streams", "congestion_control") == (2, None)
    assert tally.malformed == 0


def test_an_iperf2_server_keeps_tests_of_several_clients_apart() -> None:
    rows, _ = sample("iperf2-server.txt")
    assert [facts(row, "streams", "complete") for row in rows] == [
        (1, True), (3, True), (1, True), (2, True), (1, True), (1, True), (1, True), (2, True),
        (1, True), (2, True), (1, True), (2, True), (1, False),
    ]  # fmt: skip
    assert facts(rows[4], "from_host", "to_host") == ("192.0.2.1", "198.51.100.2")
    assert facts(rows[6], "from_host", "to_host") == ("198.51.100.2", "192.0.2.1")
    assert rows[-1]["code"] == "no result of the receiver"


def test_an_iperf2_output_that_was_cut_gives_no_figure(tmp_path: Path) -> None:
    whole = (
        "Client connecting to 10.0.0.2, TCP port 5001\n"
        "[  3] local 10.0.0.1 port 4 connected with 10.0.0.2 port 5001\n"
        "[ ID] Interval       Transfer     Bandwidth\n"
        "[  3]  0.0- 1.0 sec  1.00 MBytes  8.39 Mbits/sec\n"
        "[  3]  1.0- 2.0 sec  1.00 MBytes  8.39 Mbits/sec\n"
        "[  3]  0.0- 2.0 sec  2.00 MBytes  8.39 Mbits/sec\n"
    )
    rows, _ = given(tmp_path, whole, "iperf2")
    assert facts(rows[0], "bytes", "duration_s", "rate_bps") == (2 << 20, 2.0, 8.39e6)
    rows, _ = given(tmp_path, "".join(whole.splitlines(keepends=True)[:5]), "iperf2")
    assert facts(rows[0], "complete", "code") == (False, "no result of all streams")


IPERF2_BOTH = (
    "Server listening on TCP port 5403\n"
    "Client connecting to 192.0.2.2, TCP port 5402\n"
    "[  1] local 192.0.2.1 port 40379 connected with 192.0.2.2 port 5402\n"
    "[  2] local 192.0.2.1 port 5403 connected with 192.0.2.2 port 45798\n"
    "[  1] 0.0000-1.0000 sec  2.63 MBytes  20.7 Mbits/sec\n"
    "[  2] 0.0000-1.0000 sec  2.50 MBytes  10.0 Mbits/sec\n"
)
IPERF2_OTHER_END = (
    "Server listening on TCP port 5402\n"
    "[  1] local 192.0.2.2 port 5402 connected with 192.0.2.1 port 40379\n"
    "Client connecting to 192.0.2.1, TCP port 5403\n"
    "[ *2] local 192.0.2.2 port 45798 connected with 192.0.2.1 port 5403 (reverse)\n"
    "[  1] 0.0000-1.0000 sec  2.63 MBytes  20.7 Mbits/sec\n"
    "[ *2] 0.0000-1.0000 sec  2.50 MBytes  10.0 Mbits/sec\n"
)


@pytest.mark.parametrize(
    "text", [IPERF2_BOTH, IPERF2_OTHER_END, IPERF2_OTHER_END.replace("*", "").replace(" (r", "")]
)
def test_both_ends_of_iperf2_may_connect(tmp_path: Path, text: str) -> None:
    rows, _ = given(tmp_path, text, "iperf2")
    assert sorted(facts(row, "from_host", "to_host", "rate_bps", "streams") for row in rows) == [
        ("192.0.2.1", "192.0.2.2", 20.7e6, 1),
        ("192.0.2.2", "192.0.2.1", 10e6, 1),
    ]
    # With `-r` the one begins when the other has ended.
    lines = text.splitlines(keepends=True)
    if text == IPERF2_BOTH:
        rows, _ = given(tmp_path, "".join(lines[at] for at in (0, 1, 2, 4, 3, 5)), "iperf2")
        assert [facts(row, "from_host", "rate_bps") for row in rows] == [
            ("192.0.2.1", 20.7e6),
            ("192.0.2.2", 10e6),
        ]


def test_iperf2_tells_of_a_refusal_before_or_behind_its_header(tmp_path: Path) -> None:
    refused = "tcp connect failed: Connection refused\n"
    header = "Client connecting to 192.0.2.2, TCP port 5999\n"
    stream = "[  1] local 0.0.0.0 port 0 connected with 192.0.2.2 port 5999\n"
    for text in (refused + header + stream, header + refused):
        rows, _ = given(tmp_path, text, "iperf2")
        assert [facts(row, "complete", "code") for row in rows] == [(False, "Connection refused")]
        assert len(given(tmp_path, 2 * text, "iperf2")[0]) == 2


IPERF2_CLIENT = (
    "Client connecting to 192.0.2.2, TCP port 5471\n"
    "[  1] local 192.0.2.1 port 49708 connected with 192.0.2.2 port 5471\n"
)
IPERF2_INTERVALS = (
    "[ ID] Interval       Transfer     Bandwidth\n"
    "[  1] 0.0000-1.0000 sec  2.50 MBytes  21.0 Mbits/sec\n"
    "[  1] 1.0000-2.0000 sec  2.50 MBytes  21.0 Mbits/sec\n"
)
IPERF2_FIGURES = "[  1] 0.0000-2.3012 sec  5.75 MBytes  21.0 Mbits/sec\n"
IPERF2_BROKEN = "write failed: Broken pipe\nshutdown failed: Transport endpoint is not connected\n"


def test_an_iperf2_client_that_could_not_write_has_failed_and_no_other_has(tmp_path: Path) -> None:
    good = IPERF2_CLIENT + IPERF2_INTERVALS + IPERF2_FIGURES
    cut = IPERF2_CLIENT + IPERF2_INTERVALS + IPERF2_BROKEN
    short = IPERF2_CLIENT + IPERF2_BROKEN + IPERF2_FIGURES
    for text, complete in (
        (short, [False]),
        (cut + IPERF2_FIGURES, [False]),
        (good + cut + IPERF2_FIGURES + good, [True, False, True]),
        (good + short + good, [True, False, True]),
        (good + cut + good, [True, False, True]),
        (good + IPERF2_CLIENT + IPERF2_BROKEN + good, [True, False, True]),
        # Written before the header of its test.
        (IPERF2_BROKEN + good + good, [False, True]),
        (good + IPERF2_BROKEN + good + good, [True, False, True]),
    ):
        rows, _ = given(tmp_path, text, "iperf2")
        assert [row["complete"] for row in rows] == complete, text
    rows, _ = given(tmp_path, short.replace("write", "write2"), "iperf2")
    assert facts(rows[0], "code", "bytes") == ("Broken pipe", None)
    passing = short.replace("Broken pipe", "Interrupted system call")
    assert given(tmp_path, passing, "iperf2")[0][0]["complete"]


IPERF2_UDP = (
    "Client connecting to 192.0.2.2, UDP port 5001\n"
    "[412] local 192.0.2.1 port 60632 connected with 192.0.2.2 port 5001\n"
    "[412]  0.0- 5.0 sec  5.96 MBytes  10.0 Mbits/sec\n"
    "[412] Server Report:\n"
    "[412]  0.0- 5.0 sec  5.85 MBytes  9.83 Mbits/sec  0.005 ms   -6/ 4175 (-0.14%)\n"
    "[412]  0.0- 5.0 sec  41 datagrams received out-of-order\n"
)


def test_udp_of_iperf2_may_have_lost_less_than_nothing(tmp_path: Path) -> None:
    # What could not be written is of this test, and lost.
    text = IPERF2_UDP.replace("[412] Server", "write failed: No buffer space\n[412] Server")
    for one in (IPERF2_UDP, text):
        rows, _ = given(tmp_path, one + IPERF2_CLIENT + IPERF2_FIGURES, "iperf2")
        assert [facts(row, "complete", "rate_bps") for row in rows] == [
            (True, 9.83e6),
            (True, 21e6),
        ]


def test_an_iperf2_sum_may_change_how_many_streams_it_is_of(tmp_path: Path) -> None:
    text = (
        "Server listening on TCP port 5431\n"
        "[SUM-cnt] Interval       Transfer     Bandwidth\n"
        "[SUM-3] 0.0000-1.0000 sec  3.88 MBytes  32.5 Mbits/sec\n"
        "[SUM-6] 1.0000-2.0288 sec  4.00 MBytes  32.6 Mbits/sec\n"
        "[SUM-6] 0.0000-2.0288 sec  7.88 MBytes  32.6 Mbits/sec\n"
    )
    [row] = given(tmp_path, text, "iperf2")[0]
    assert facts(row, "duration_s", "rate_bps", "streams") == (2.0288, 32.6e6, 3)
    assert row["bytes"] == round(7.88 * 2**20)
    [row] = given(tmp_path, text.rpartition("[SUM-6]")[0], "iperf2")[0]
    assert facts(row, "complete", "code") == (False, "no result of all streams")


def test_round_trips_of_iperf2_are_no_transfer(tmp_path: Path) -> None:
    at_client = (
        "Client connecting to 192.0.2.2, TCP port 5431 with pid 28819 (1 flows)\n"
        "Bounce-back test (size= 100 Byte) (server hold req=0 usecs & tcp_quickack)\n"
        "[  1] local 192.0.2.1%lo port 52502 connected with 192.0.2.2 port 5431"
        " (bb w/quickack len/hold=100/0) (sock=3) on 2026-11-28 22:10:31 (UTC)\n"
        "[  1] 0.0000-2.0049 sec  3.91 KBytes  16.0 Kbits/sec    20=0.252/0.019/4.464/0.992 ms"
        "    0  576K/607 us    3969 rps\n"
    )
    at_server = (
        "Server listening on TCP port 5431\n"
        "[  1] local 192.0.2.2 port 5431 connected with 192.0.2.1 port 52502"
        " (bb w/quickack len/hold=100/0) (icwnd/mss/irtt=320/32768/23)\n"
        "[  1] 0.0000-2.0005 sec  3.91 KBytes  16.0 Kbits/sec\n"
    )
    for text in (at_client, at_server):
        rows, tally = given(tmp_path, text, "iperf2")
        assert not rows and tally.skipped["round trips of --bounceback"] == 1
    rows, _ = given(tmp_path, at_client + IPERF2_CLIENT + IPERF2_FIGURES, "iperf2")
    assert [row["rate_bps"] for row in rows] == [21e6]


def test_iperf2_may_say_when_it_started_to_the_millisecond(tmp_path: Path) -> None:
    client = IPERF2_CLIENT.replace("5471\n[", "5471 with pid 30869 (1 flows)\n[")
    text = client[:-1] + " (sock=3) (ct=0.34 ms) on 2026-11-28 22:11:32.781 (UTC)\n"
    [row] = given(tmp_path, text + IPERF2_FIGURES, "iperf2")[0]
    assert row["started_at"] == datetime(2026, 11, 28, 22, 11, 32, 781_000)


def test_an_old_iperf3_server_writes_zeros_for_the_other_end(tmp_path: Path) -> None:
    text = (
        "Accepted connection from 10.0.0.1, port 1\n"
        "[  5] local 10.0.0.2 port 5201 connected to 10.0.0.1 port 2\n"
        "[ ID] Interval           Transfer     Bandwidth\n"
        "[  5]   0.00-10.04  sec  {0} Bytes  0.00 bits/sec                  {1}\n"
        "[  5]   0.00-10.04  sec  1.00 GBytes   935 Mbits/sec                  {2}\n"
    )
    for other, own, sender in (
        ("sender", "receiver", "10.0.0.1"),
        ("receiver", "sender", "10.0.0.2"),
    ):
        rows, _ = given(tmp_path, text.format("0.00", other, own), "iperf3-text")
        assert [facts(row, "rate_bps", "from_host") for row in rows] == [(935e6, sender)]


IPERF3 = (
    "Connecting to host 10.0.0.{0}, port 5201\n"
    "[  5] local 10.0.0.99 port 1 connected to 10.0.0.{0} port 5201\n"
    "[ ID] Interval           Transfer     Bitrate         Retr  Cwnd\n"
    "[  5]   0.00-1.00   sec   999 MBytes   999 Gbits/sec   99   3.10 MBytes       \n"
    "[ ID] Interval           Transfer     Bitrate         Retr\n"
    "[  5]   0.00-1.00   sec   200 MBytes  {0}.00 Gbits/sec    {0}             sender\n"
    "[  5]   0.00-1.00   sec   200 MBytes  {0}.00 Gbits/sec                  receiver\n"
    "iperf Done.\n"
)


@draws(40, SAME_FOLDER)
@examples(data=st.data())
def test_no_iperf3_test_has_a_figure_of_another(tmp_path: Path, data: st.DataObject) -> None:
    lines = [line for number in (1, 2, 3) for line in IPERF3.format(number).splitlines()]
    gone = data.draw(st.sets(st.sampled_from(range(len(lines))), max_size=4))
    # Without the lines that begin tests, tests cannot be told apart.
    gone -= {place for place in gone if place % 8 in (0, 7)}
    text = "\n".join(line for place, line in enumerate(lines) if place not in gone) + "\n"
    rows, _ = given(tmp_path, text, "iperf3-text")
    for row in rows:
        hosts = row["to_host"] and int(row["to_host"].rpartition(".")[2])
        rate = row["rate_bps"] and round(row["rate_bps"] / 1e9)
        assert len({hosts, rate, row["retransmits"]} - {None}) <= 1


def test_iperf3_tests_with_titles_may_alternate(tmp_path: Path) -> None:
    one, two = (IPERF3.format(number).splitlines() for number in (1, 2))
    pairs = zip(one, two, strict=True)
    text = "".join(f"a:  {first}\nb:  {second}\n" for first, second in pairs)
    rows, _ = given(tmp_path, text, "iperf3-text")
    assert [facts(row, "to_host", "rate_bps") for row in rows] == [
        ("10.0.0.1", 1e9),
        ("10.0.0.2", 2e9),
    ]


def test_iperf3_titles_may_stand_behind_a_clock(tmp_path: Path) -> None:
    lines = IPERF3.format(1).splitlines()
    for clock in (
        "Sat Nov 28 05:27:{:02} 2026 ",
        "2026-11-28T05:27:{:02}+0000 ",
        "05:27:{:02} ",
        "Sat 28 Nov 2026 05:27:{:02} AM UTC ",
        "17958436{:02} ",
    ):
        text = "".join(f"{clock.format(at)}my run:  {line}\n" for at, line in enumerate(lines))
        rows, _ = given(tmp_path, text, "iperf3-text")
        assert [facts(row, "to_host", "rate_bps") for row in rows] == [("10.0.0.1", 1e9)]


@pytest.mark.parametrize("rate", ["0.02 Gbits", "0.00 TBytes", "0.00 GBytes"])
def test_an_iperf3_rate_in_a_unit_too_large_is_that_of_its_bytes(tmp_path: Path, rate: str) -> None:
    text = IPERF3.format(1).replace("200 MBytes  1.00 Gbits", f"2.50 MBytes  {rate}")
    rows, _ = given(tmp_path, text, "iperf3-text")
    assert [row["rate_bps"] for row in rows] == [2.5 * 2**20 * 8]


IPERF3_SERVER = (
    "-----------------------------------------------------------\n"
    "Server listening on 5201 (test #{0})\n"
    "-----------------------------------------------------------\n"
    "Accepted connection from 10.0.0.{0}, port 1\n"
    "[  5] local 10.0.0.99 port 5201 connected to 10.0.0.{0} port 2\n"
    "[ ID] Interval           Transfer     Bitrate\n"
    "[  5]   0.00-1.00   sec  2.50 MBytes  20.9 Mbits/sec                  \n"
    "[  5]   1.00-2.00   sec  2.50 MBytes  20.9 Mbits/sec                  \n"
    "- - - - - - - - - - - - - - - - - - - - - - - - -\n"
    "[ ID] Interval           Transfer     Bitrate\n"
    "[  5]   0.00-2.00   sec  5.00 MBytes  20.9 Mbits/sec                  receiver\n"
)
IPERF3_LISTENS = IPERF3_SERVER[: IPERF3_SERVER.index("Accepted")]
SERVER_GONE = "iperf3: interrupt - the server has terminated\n"


def test_an_iperf3_server_that_is_interrupted_fails_the_test_it_was_in(tmp_path: Path) -> None:
    one, two = (IPERF3_SERVER.format(number) for number in (1, 2))
    idle = IPERF3_LISTENS.format(3)
    for text, complete in (
        # On a terminal: in a test, and between tests.
        (one + two + SERVER_GONE, [True, False]),
        (one + two + SERVER_GONE + one, [True, False, True]),
        (one + two + idle + SERVER_GONE, [True, True]),
        (one + two + idle + SERVER_GONE + one, [True, True, True]),
        # In a file its message stands before what it had not written yet.
        (one + SERVER_GONE + two, [True, False]),
        (SERVER_GONE + one, [False]),
        (one + two + SERVER_GONE + idle, [True, True]),
        (one + two + SERVER_GONE + idle + one, [True, True, True]),
        (one + SERVER_GONE + two + one, [True, False, True]),
    ):
        rows, _ = given(tmp_path, text, "iperf3-text")
        assert [row["complete"] for row in rows] == complete, text


def test_an_iperf3_server_that_does_not_number_its_tests_says_early_that_it_was_interrupted(
    tmp_path: Path,
) -> None:
    one, two = (IPERF3_SERVER.format(number) for number in (1, 2))
    idle = IPERF3_LISTENS.format(1)
    for text, complete in (
        # 3.2 to 3.7, into a file: in a test, between tests, and started anew.
        (one + SERVER_GONE + two, [True, False]),
        (one + SERVER_GONE + idle, [True]),
        (one + SERVER_GONE + two + one + idle, [True, False, True]),
        (one + SERVER_GONE + idle + one + idle, [True, True]),
        (SERVER_GONE + one + two + idle, [False, True]),
    ):
        unnumbered = re.sub(r" \(test #\d\)", "", text)
        rows, _ = given(tmp_path, unnumbered, "iperf3-text")
        assert [row["complete"] for row in rows] == complete, text
    # Before, its message stands where it belongs, and what listens then was started anew.
    for text, complete in (
        (one + two + SERVER_GONE, [True, False]),
        (one + two + SERVER_GONE + one + idle, [True, False, True]),
        (one + idle + SERVER_GONE, [True]),
    ):
        old = re.sub(r" \(test #\d\)", "", text.replace("Bitrate", "Bandwidth"))
        rows, _ = given(tmp_path, old, "iperf3-text")
        assert [row["complete"] for row in rows] == complete, text


IPERF3_WITHOUT_INTERVALS = (
    "Accepted connection from 127.0.0.1, port 57606\n"
    "[  6] local 127.0.0.1 port 5441 connected to 127.0.0.1 port 57618\n"
    "- - - - - - - - - - - - - - - - - - - - - - - - -\n"
    "[ ID] Interval           Transfer     Bitrate\n"
    "[  6]   0.00-6229.52 sec  4.88 MBytes  6.56 Kbits/sec                  receiver\n"
)


def test_an_iperf3_server_without_intervals_says_that_a_client_has_terminated(
    tmp_path: Path,
) -> None:
    listens = "Server listening on 5441 (test #{0})\n"
    one, two = (listens.format(number) + IPERF3_WITHOUT_INTERVALS for number in (1, 2))
    left = "iperf3: the client has terminated\n"
    gone = "iperf3: interrupt - the server has terminated by signal Interrupt(2)\n"
    for text, complete in (
        # With --logfile; then with messages before what is still to be printed.
        (one + left + listens.format(2) + gone, [False]),
        (one + two + left + listens.format(3) + gone, [True, False]),
        (left + one + gone + listens.format(2), [False]),
        (left + one + left + two + gone + listens.format(3), [False, False]),
        (left + one + two + gone + listens.format(3), [False, True]),
    ):
        rows, _ = given(tmp_path, text, "iperf3-text")
        assert [row["complete"] for row in rows] == complete, text
        assert {row["code"] for row in rows} <= {"the other end has terminated", None}


def test_an_iperf3_test_that_the_other_end_interrupted_has_failed(tmp_path: Path) -> None:
    message = "iperf3: the client has terminated\n"
    last = "[  5]   1.00-2.00   sec  2.50 MBytes  20.9 Mbits/sec                  \n"
    whole, cut = IPERF3_SERVER.format(1), IPERF3_SERVER.format(2).replace(last, 2 * last)
    for text in (whole + message + cut, whole + cut + message):
        rows, _ = given(tmp_path, text + IPERF3_LISTENS.format(3), "iperf3-text")
        assert [facts(row, "complete", "code") for row in rows] == [
            (True, None),
            (False, "the other end has terminated"),
        ]


def test_an_iperf3_client_that_was_interrupted_has_failed(tmp_path: Path) -> None:
    done = IPERF3.format(1)
    cut = IPERF3.format(2).replace("iperf Done.\n", "")
    message = "iperf3: interrupt - the client has terminated by signal Interrupt(2)\n"
    for text, complete in (
        # In a file the message comes first; it can be of a client that never connected, too.
        (message + cut, [False]),
        (done + message + cut + message + cut + done, [True, False, False, True]),
        (done + cut + message + done, [True, False, True]),
        (message + done, [True]),
    ):
        rows, _ = given(tmp_path, text, "iperf3-text")
        assert [row["complete"] for row in rows] == complete, text


def test_udp_of_old_iperf3_is_what_was_not_lost(tmp_path: Path) -> None:
    text = (
        "Connecting to host b, port 5201\n"
        "[  4] local 192.0.2.1 port 1 connected to 192.0.2.2 port 5201\n"
        "[ ID] Interval           Transfer     Bandwidth       Total Datagrams\n"
        "[  4]   0.00-1.00   sec   128 KBytes  1.05 Mbits/sec  16  \n"
        "[ ID] Interval           Transfer     Bandwidth       Jitter    Lost/Total Datagrams\n"
        "[  4]   0.00-10.00  sec  1.25 MBytes  1.00 Mbits/sec  0.011 ms  40/160 (25%)  \n"
        "[  4] Sent 160 datagrams\n"
    )
    rows, _ = given(tmp_path, text, "iperf3-text")
    assert facts(rows[0], "rate_bps", "transport") == (750e3, "udp")


def test_udp_of_a_server_that_says_0_is_what_its_intervals_say(tmp_path: Path) -> None:
    text = (
        "Accepted connection from 192.0.2.2, port 1\n"
        "[  5] local 192.0.2.1 port 5201 connected to 192.0.2.2 port 2\n"
        "[ ID] Interval           Transfer     Bandwidth       Jitter    Lost/Total Datagrams\n"
        "[  5]   0.00-1.00   sec   100 KBytes   819 Kbits/sec  7.973 ms  0/100 (0%)\n"
        "[  5]   1.00-2.00   sec   200 KBytes  1.64 Mbits/sec  8.045 ms  50/250 (20%)\n"
        "- - - - - - - - - - - - - - - - - - - - - - - - -\n"
        "[ ID] Interval           Transfer     Bandwidth       Jitter    Lost/Total Datagrams\n"
        "[  5]   0.00-2.00   sec  0.00 Bytes  0.00 bits/sec  7.998 ms  50/350 (14%)\n"
    )
    rows, _ = given(tmp_path, text, "iperf3-text")
    assert facts(rows[0], "complete", "bytes", "rate_bps") == (True, 307_200, 307_200 * 4)
    rows, _ = given(tmp_path, text.replace("50/350 (14%)", "0/0 (0%)"), "iperf3-text")
    assert facts(rows[0], "complete", "code") == (False, "nothing arrived")
