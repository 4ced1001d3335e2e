from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gossamer.model.visits import content_type, first_values
from gossamer.stages.fetch import headers
from gossamer.stages.fetch.headers import Head, parse_head


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


_LINES = st.lists(
    st.one_of(
        st.sampled_from([b"A: 1\r\n", b"a: 2\n", b" more\r\n", b"\tb: c\r\n", b"none\r\n"]),
        st.sampled_from([b": x\r\n", b"d:\n\n", b"e: f"]),
        st.builds(lambda text: text + b"\r\n", st.binary(max_size=12)),
        st.binary(max_size=12),
    ),
    max_size=8,
)  # fmt: skip


@given(_LINES)
@example([b"e: f", b"A: 1\r\n"])
@example([b"A: 1\r\n", b" more\r\n", b"none\r\n", b"a: 2\n"])
def test_remembered_lines_are_read_as_a_block(lines: list[bytes]) -> None:
    block = [line for line in lines if line not in headers.LINE_ENDS]
    expected = headers._parse_lines(block)
    for _ in range(2):
        head = parse_head([b"HTTP/1.1 200 OK\r\n", *block])
        assert head is not None
        assert list(head.headers) == expected
        assert first_values(head.headers) == first_values(expected)
        assert first_values(expected) == {
            name: next(value for one, value in expected if one.lower() == name)
            for name in {n.lower() for n, _ in expected}
        }


def test_remembered_lines_are_bounded() -> None:
    for number in range(3 * headers.LINES_MAX):
        parse_head([b"HTTP/1.1 200 OK\r\n", b"A: %d\r\n" % number, b"B: %300d\r\n" % number])
    assert len(headers._lines) <= headers.LINES_MAX
    assert max(map(len, headers._lines)) <= headers.LINE_BYTES_MAX


@given(st.lists(st.text(max_size=60)))
def test_no_value_raises(values: list[str]) -> None:
    for value in values:
        content_type((("Content-Type", value),))


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
        ("text/html, text/plain", ("text/plain", "")),
        ("text/html, text/html; charset=latin1", ("text/html", "latin1")),
        ("text/html;charset=gbk, text/html", ("text/html", "gbk")),
        ("text/html; charset=gbk, text/plain", ("text/plain", "")),
        ("text/html; charset=gbk, rubbish, */*", ("text/html", "gbk")),
        (", text/html,", ("text/html", "")),
        ('text/html; x=",text/plain"', ("text/html", "")),
        ('text/html; x="; charset=gbk"; charset=utf-8', ("text/html", "utf-8")),
        ("text/html; charset=; charset=utf-8; charset=gbk", ("text/html", "utf-8")),
        ('text/html; charset="utf-8', ("text/html", "utf-8")),
        ("*/*; charset=utf-8", ("", "")),
    ],
)
def test_content_types(value: str, expected: tuple[str, str]) -> None:
    assert content_type((("content-type", value),)) == expected


def test_of_several_content_types_the_last_good_one_counts() -> None:
    headers = (("Content-Type", "a/b"), ("X", "y"), ("content-type", "c/d; charset=e"), ("Content-Type", "rubbish"))
    assert content_type(headers) == ("c/d", "e")
    assert content_type(()) == ("", "")
