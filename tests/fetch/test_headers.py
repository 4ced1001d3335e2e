from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.fetch.headers import Head, content_type, http_date, max_age_s, parse_head, retry_after_s
from gossamer.model.visits import Reply

NOON = 784_900_800.0  # 1994-11-15 12:00:00 UTC


def a_reply(*headers: tuple[str, str]) -> Reply:
    return Reply(
        url="", status=503, headers=headers, body=b"", ip="", started_at=0.0, fetch_s=0.0, wire_bytes=0
    )  # fmt: skip


def test_a_head() -> None:
    lines = [b"HTTP/1.1 200 OK\r\n", b"A: 1\r\n", b"no colon\r\n", b": no name\r\n", b"B :\t2 \r\n", b"\r\n"]
    assert parse_head(lines) == Head("1.1", 200, "OK", (("A", "1"), ("B", "2")))


def test_interim_heads_and_trailers_are_dropped() -> None:
    lines = [b"HTTP/1.1 100 Continue\r\n", b"\r\n", b"HTTP/1.1 103 Early Hints\r\n", b"Link: x\r\n", b"\r\n"]
    lines += [b"HTTP/2 204 \r\n", b"a: b\r\n", b"\r\n", b"trailer: x\r\n", b"\r\n"]
    assert parse_head(lines) == Head("2", 204, "", (("a", "b"),))


@pytest.mark.parametrize(
    "lines",
    [[], [b"\r\n"], [b"A: b\r\n", b"\r\n"], [b"HTTP/1.1 100 Continue\r\n", b"\r\n"], [b"HTTP/1.1 20 OK\r\n", b"\r\n"],
     [b"HTTP/1.1 2000 OK\r\n", b"\r\n"], [b"ICY 200 OK\r\n", b"\r\n"], [b"HTTP/1.1 100 C\r\n"]],
)  # fmt: skip
def test_what_is_no_head(lines: list[bytes]) -> None:
    assert parse_head(lines) is None


def test_a_head_cut_short_still_has_its_status() -> None:
    assert parse_head([b"HTTP/1.1 200 OK\r\n", b"A: b\r\n"]) == Head("1.1", 200, "OK", (("A", "b"),))


@given(st.lists(st.binary(max_size=40)))
def test_nothing_raises(lines: list[bytes]) -> None:
    parse_head(lines)
    parse_head([b"HTTP/1.1 200 OK\r\n", *lines])


@given(st.lists(st.text(max_size=60)))
def test_no_value_raises(values: list[str]) -> None:
    for value in values:
        reply = a_reply(("Content-Type", value), ("Retry-After", value), ("Date", value), ("Cache-Control", value))
        content_type(reply.headers)
        assert (retry_after_s(reply, NOON) or 0.0) >= 0.0
        max_age_s(reply)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("text/html", ("text/html", "")),
        ("Text/HTML; Charset=UTF-8", ("text/html", "UTF-8")),
        ('text/html; charset="utf-8"; x=y', ("text/html", "utf-8")),
        ("text/html;charset='utf-8'", ("text/html", "utf-8")),
        ('text/html; charset="a\\"b"', ("text/html", 'a"b')),
        ("text/html ; charset = latin1 ", ("text/html", "latin1")),
        ("text/html; charset=", ("text/html", "")),
        ("application/ld+json", ("application/ld+json", "")),
        ("html", ("", "")),
        ("", ("", "")),
        ("text/html, text/plain", ("", "")),
    ],
)
def test_content_types(value: str, expected: tuple[str, str]) -> None:
    assert content_type((("content-type", value),)) == expected


def test_of_several_content_types_the_last_good_one_counts() -> None:
    headers = (("Content-Type", "a/b"), ("X", "y"), ("content-type", "c/d; charset=e"), ("Content-Type", "rubbish"))
    assert content_type(headers) == ("c/d", "e")
    assert content_type(()) == ("", "")


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
        ("1.5", None),
        ("", None),
        ("9" * 30, None),
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
        ([], None),
    ],
)
def test_max_age(values: list[str], expected: float | None) -> None:
    assert max_age_s(a_reply(*(("Cache-Control", value) for value in values))) == expected


def test_dates_that_are_none() -> None:
    for text in ("", "Tue, 99 Nov 1994 12:00:00 GMT", "Tue, 15 Nov 99999 12:00:00 GMT", "0"):
        assert http_date(text) is None
    assert http_date("Tue, 15 Nov 1994 12:00:00 GMT") == NOON
