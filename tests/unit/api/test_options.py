"""Options of keyword arguments: read as plans are, refused with the way to write them."""

from __future__ import annotations

import pytest

from farline.api.options import copy_spec_of, spec_of
from farline.errors import SpecError

pytestmark = pytest.mark.unit


def test_texts_carry_units_and_sections_are_mappings() -> None:
    spec = spec_of({"duration_s": "5s", "streams": 4, "tcp": {"send_buffer_bytes": "16M"}})
    assert spec == {"duration_s": 5.0, "streams": 4, "tcp": {"send_buffer_bytes": 16 << 20}}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"stream": 4}, r"stream: unknown; did you mean streams\?"),
        ({"congestion_control": "reno"}, r'write tcp=\{"congestion_control"'),
        ({"streams": 0}, "out of range"),
        ({"duration_s": "5"}, "unit"),
        ({"nonsense": 1}, "nonsense: unknown; allowed: .*transport, direction, streams"),
    ],
)
def test_what_is_wrong_is_said_with_what_is_right(options: dict[str, object], said: str) -> None:
    with pytest.raises(SpecError, match=said):
        spec_of(options)


def test_options_of_a_copy_need_no_section() -> None:
    spec = copy_spec_of({"overwrite": "different", "streams": 2, "copy": {"times": True}})
    assert spec["copy"] == {"times": True, "overwrite": "different"}
    assert spec["streams"] == 2


def test_an_option_of_probes_is_none_of_copies() -> None:
    with pytest.raises(SpecError, match="duration_s"):
        copy_spec_of({"duration_s": 5})
