"""Times in the headers of replies."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.model.visits import LOWER_NAMES_MAX, LowerNames, Reply, http_date, max_age_s, retry_after_s

NOON = 784_900_800.0  # 1994-11-15 12:00:00 UTC


def a_reply(*headers: tuple[str, str]) -> Reply:
    return Reply(
        url="", status=503, headers=headers, body=b"", ip="", started_at=0.0, fetch_s=0.0, wire_bytes=0
    )  # fmt: skip


@given(st.text())
def test_nothing_is_raised_whatever_is_sent(value: str) -> None:
    reply = a_reply(("Retry-After", value), ("Date", value), ("Cache-Control", value))
    assert (retry_after_s(reply, NOON) or 0.0) >= 0.0
    assert (max_age_s(reply.headers) or 0.0) >= 0.0


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("120", 120.0),
        (" 0 ", 0.0),
        ("Tue, 15 Nov 1994 12:01:00 GMT", 60.0),
        ("Tuesday, 15-Nov-94 12:01:00 GMT", 60.0),
        ("Tue Nov 15 12:01:00 1994", 60.0),
        ("Tue, 15 Nov 1994 11:00:00 GMT", 0.0),
        ("-5", None),
        ("soon", None),
        ("292.052427053", 292.052427053),  # sentry 7919, urllib3 2861
        ("1.5.1", None),
        ("", None),
        ("9" * 30, 999_999_999_999_999_999.0),
        ("\u0663", None),
    ],
)
def test_retry_after(value: str, expected: float | None) -> None:
    assert retry_after_s(a_reply(("Retry-After", value)), NOON) == expected


def test_retry_after_goes_by_the_servers_clock() -> None:
    reply = a_reply(("Date", "Tue, 15 Nov 1994 10:00:00 GMT"), ("retry-after", "Tue, 15 Nov 1994 10:00:30 GMT"))
    assert retry_after_s(reply, NOON) == 30.0
    assert retry_after_s(a_reply(), NOON) is None


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["max-age=60"], 60.0),
        (["public, Max-Age = 60, x"], 60.0),
        (['max-age="60"'], 60.0),
        (["private", "max-age=5"], 5.0),
        (["no-cache, max-age=60"], 0.0),
        (["No-Store"], 0.0),
        (["s-maxage=60"], None),
        (["max-age=-1"], None),
        (["max-age=x"], None),
        (["max-age=" + "9" * 30], 999_999_999_999_999_999.0),
        ([], None),
    ],
)
def test_max_age(values: list[str], expected: float | None) -> None:
    assert max_age_s([("Cache-Control", value) for value in values]) == expected


def test_dates_that_are_none() -> None:
    for text in ("", "Tue, 99 Nov 1994 12:00:00 GMT", "Tue, 15 Nov 99999 12:00:00 GMT", "0"):
        assert http_date(text) is None
    assert http_date("Tue, 15 Nov 1994 12:00:00 GMT") == NOON


def test_names_of_headers_are_kept_within_bounds() -> None:
    names = LowerNames()
    assert names["X-" + "A" * 100] == "x-" + "a" * 100
    assert not names
    for number in range(2_000):
        assert names[f"X-{number}"] == f"x-{number}"
    assert len(names) == LOWER_NAMES_MAX
    assert names["X-0"] == "x-0"
