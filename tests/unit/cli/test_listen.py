"""Where `farline serve --listen` listens."""

from __future__ import annotations

import click
import pytest

from farline.cli.listen import Listen, read_listen


@pytest.mark.parametrize(
    ("texts", "port", "expected"),
    [
        ((), None, Listen((), 5470)),
        ((), 0, Listen((), 0)),
        (("127.0.0.1",), None, Listen(("127.0.0.1",), 5470)),
        (("127.0.0.1:7799",), None, Listen(("127.0.0.1",), 7799)),
        (("127.0.0.1:7799",), 7799, Listen(("127.0.0.1",), 7799)),
        ((":7799",), None, Listen((), 7799)),
        (("::1",), 7, Listen(("::1",), 7)),
        (("[::1]",), None, Listen(("::1",), 5470)),
        (("[::1]:7799",), None, Listen(("::1",), 7799)),
        (("127.0.0.1:7", "[::1]:7"), None, Listen(("127.0.0.1", "::1"), 7)),
        (("127.0.0.1", "[::1]:7"), None, Listen(("127.0.0.1", "::1"), 7)),
        (("127.0.0.1", "127.0.0.1"), None, Listen(("127.0.0.1",), 5470)),
    ],
)
def test_an_address_a_port_or_both(
    texts: tuple[str, ...], port: int | None, expected: Listen
) -> None:
    assert read_listen(texts, port) == expected


@pytest.mark.parametrize(
    "text",
    ["localhost", "", ":", "1.2.3.4:", "1.2.3.4:x", "1.2.3.4:65536", "[1.2.3.4]", "[1.2.3.4]:7",
     "::1]:7", "1.2.3.4:-1", "1.2.3.4:٣", ":99999999999999999999"],
)  # fmt: skip
def test_what_is_no_address_is_refused_with_what_is_accepted(text: str) -> None:
    with pytest.raises(click.UsageError, match=r"write ADDR, :PORT, ADDR:PORT or \[IPv6\]:PORT"):
        read_listen((text,), None)


@pytest.mark.parametrize(
    ("texts", "port", "said"),
    [
        (("127.0.0.1:7", "127.0.0.2:8"), None, "name different ports"),
        ((":7", ":8"), None, "name different ports"),
        (("127.0.0.1:7",), 8, "--listen 127.0.0.1:7 and --port 8 name different ports"),
        ((":7", "127.0.0.1:7"), None, "listens on all addresses, 127.0.0.1 too"),
    ],
)
def test_two_answers_to_one_question_are_refused(
    texts: tuple[str, ...], port: int | None, said: str
) -> None:
    with pytest.raises(click.UsageError, match=said):
        read_listen(texts, port)
