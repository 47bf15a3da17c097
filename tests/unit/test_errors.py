"""The exception tree against the generated table of failures."""

from __future__ import annotations

import inspect
import json

import pytest

from farline import errors
from farline.spec._failures import FAILURES


def test_every_kind_is_one_class_with_its_fault_exit_code_and_retry() -> None:
    told = {kind: (cls.fault, cls.exit_code, cls.may_retry) for kind, cls in errors.KINDS.items()}
    assert told == FAILURES


def test_every_class_is_in_the_table_and_in_the_drawing() -> None:
    leaves = {
        cls
        for _, cls in inspect.getmembers(errors, inspect.isclass)
        if issubclass(cls, errors.FarlineError) and "kind" in vars(cls)
    }
    assert leaves == set(errors.KINDS.values())
    assert errors.__doc__ is not None
    for cls in leaves:
        line = next(line for line in errors.__doc__.splitlines() if cls.__name__ in line)
        assert f" {cls.exit_code}" in line
        assert ("  yes" in line) == cls.may_retry


@pytest.mark.parametrize("kind", FAILURES)
def test_failures_go_up_and_down_unchanged(kind: str) -> None:
    document = {"kind": kind, "message": "one line", "retry_after_s": 2.5}
    error = errors.from_failure(json.dumps(document))
    assert type(error) is errors.KINDS[kind]
    assert error.failure() == document


def test_what_will_not_pass_stays_so_in_other_words() -> None:
    document = {"kind": "protocol", "message": "not asked for", "permanent": True}
    error = errors.from_failure(document)
    assert error.failure() == document
    assert error.reworded("in other words").failure() == document | {"message": "in other words"}


def test_messages_are_one_line() -> None:
    assert errors.SpecError("a\n  b").message == "a b"


def test_an_unknown_kind_is_our_defect() -> None:
    error = errors.from_failure({"kind": "novel", "message": "m"})
    assert isinstance(error, errors.InternalError)
    assert "novel" in error.message
