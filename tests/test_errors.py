"""Codes that another broker gives, as exceptions."""

import pytest

from lamina.errors import ErrorCode, InvalidTimestamp, NotLeaderOrFollower, UnknownServerError, error_from_code


@pytest.mark.parametrize(
    ("code", "kind"),
    [(6, NotLeaderOrFollower), (32, InvalidTimestamp), (-1, UnknownServerError), (9999, UnknownServerError)],
)
def test_a_code_becomes_its_own_exception(code: int, kind: type[Exception]) -> None:
    error = error_from_code(code, "orders-0 was refused")
    assert type(error) is kind


def test_every_code_keeps_its_number_and_its_name() -> None:
    for code in ErrorCode:
        error = error_from_code(code, "refused")
        assert code.name in str(error)
        assert error.code == code or code is ErrorCode.NONE


def test_a_number_that_nobody_knows_is_told() -> None:
    assert str(error_from_code(9999, "refused")) == "refused (error 9999)"


def test_an_error_without_frames_holds_nothing_that_holds_it() -> None:
    kept = []
    try:
        try:
            raise KeyError("orders")
        except KeyError as error:
            raise NotLeaderOrFollower("orders-0 is led elsewhere") from error
    except NotLeaderOrFollower as error:
        kept.append(error.without_frames())
    assert str(kept[0]) == "orders-0 is led elsewhere"
    assert (kept[0].__traceback__, kept[0].__cause__, kept[0].__context__) == (None, None, None)
