"""Names of files as text: as `crates/mover/src/path_text.rs` writes and reads them."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farline.spec.path_text import from_path_text, to_path_text

PATHS = st.binary(max_size=60).map(lambda path: path.replace(b"\0", b"0"))


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (b"a b/\xc3\xbc", "a b/ü"),
        (b"a\n\\\xff", "a\\x0a\\\\\\xff"),
        (b"\xc2\x85", "\\xc2\\x85"),
        ("\u00a0\u200b".encode(), "\u00a0\u200b"),
    ],
)
def test_what_a_document_cannot_bear_is_written_out(path: bytes, text: str) -> None:
    assert to_path_text(path) == text
    assert from_path_text(text) == path


@given(PATHS)
def test_text_can_be_turned_back_and_fits_one_line(path: bytes) -> None:
    text = to_path_text(path)
    assert from_path_text(text) == path
    assert not any(unicodedata.category(letter) in ("Cc", "Cs") for letter in text)


@pytest.mark.parametrize("text", ["\\", "\\a", "\\x0", "\\xzz", "\\x00", "a\0"])
def test_what_stands_for_no_name_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"backslash|zero byte"):
        from_path_text(text)
