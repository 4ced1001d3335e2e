"""Join: WHATWG addresses, whatever pages hold."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.url.join import Joiner, absolute, join

BASE = "http://example.org/a/b/c.html?q=1"

CASES = [
    ("d.html", "http://example.org/a/b/d.html"),
    ("d.html#part", "http://example.org/a/b/d.html"),
    ("#part", "http://example.org/a/b/c.html?q=1"),
    ("", "http://example.org/a/b/c.html?q=1"),
    ("?x=2", "http://example.org/a/b/c.html?x=2"),
    ("?", "http://example.org/a/b/c.html?"),
    ("../d", "http://example.org/a/d"),
    ("../../../../d/", "http://example.org/d/"),
    ("..", "http://example.org/a/"),
    (".", "http://example.org/a/b/"),
    ("./d/./e/../f", "http://example.org/a/b/d/f"),
    ("../", "http://example.org/a/"),
    ("..d", "http://example.org/a/b/..d"),
    ("d..", "http://example.org/a/b/d.."),
    ("%2e%2E/d", "http://example.org/a/d"),
    ("/d", "http://example.org/d"),
    ("//Other.Example", "http://other.example/"),
    ("\\d\\e", "http://example.org/d/e"),
    ("HTTPS://Other.Example:443/x", "https://other.example/x"),
    ("http://other.example:80", "http://other.example/"),
    ("http:d", "http://example.org/a/b/d"),
    ("  d.html\n", "http://example.org/a/b/d.html"),
    ("d\n.ht\tml", "http://example.org/a/b/d.html"),
    ("d e", "http://example.org/a/b/d%20e"),
    ("ü", "http://example.org/a/b/%C3%BC"),
    ("//münchen.example/", "http://xn--mnchen-3ya.example/"),
    ("//0x7f.1/", "http://127.0.0.1/"),
    ("//[::FFFF]/", "http://[::ffff]/"),
    ("a:b", "a:b"),
    ("mailto:me@example.org", "mailto:me@example.org"),
    ("x\ud800y", "http://example.org/a/b/x%EF%BF%BDy"),
    ("http://", None),
    ("http://exa mple/", None),
    ("http://[::1/", None),
    ("http://h:99999/", None),
    ("//1.2.3.999/", None),
]


@pytest.mark.parametrize(("href", "expected"), CASES)
def test_join(href: str, expected: str | None) -> None:
    assert join(BASE, href) == expected
    assert Joiner(BASE).join(href) == expected


def test_join_takes_no_base_that_is_none() -> None:
    assert join("not an address", "d") is None
    assert [Joiner("not an address").join(href) for href in ("d", "https://h/d")] == [None, None]


@pytest.mark.parametrize(
    "base",
    [
        "http://h", "https://h:8443/a", "HTTP://H:80/a/./b/../c?x#y", "http://u:p@h/a/", "http://127.0.0.1:8123/a/b",
        "http://[::1]/", "http://127.1/a", "http://0x7f.1/a/b", "http://h:80/a", "https://h:443/a", "http://h/a//b",
        "http://h/%7ea", "http://h/a/../b", "http://h/a\tb", " http://h/a", "http://h/a?b#c", "http://xn--a/",
        "http://\u00fc.example/a", "file:///a/b", "ftp://h/a/b", "gopher://h/1/x", "mailto:x@y", "http://h?x/y", "http://h/?/a/b",
    ],
)  # fmt: skip
def test_a_page_by_its_joiner_is_each_by_itself(base: str) -> None:
    joiner = Joiner(base)
    for href, _ in CASES:
        assert joiner.join(href) == join(base, href)


hrefs_like = st.text(st.sampled_from("ab.:/?#%2eE\\~-_ @=&;+'\"<\n\tüA"), max_size=14)


@given(st.lists(hrefs_like, max_size=6), st.sampled_from(["/", "/a/b/c", "/a/?x/y", "/a/b/?", "?x"]))
def test_the_fast_path_is_the_readable_one(hrefs: list[str], path: str) -> None:
    base = "http://h:81" + path
    joiner = Joiner(base)
    assert [joiner.join(href) for href in hrefs] == [join(base, href) for href in hrefs]


@given(st.text(st.characters(codec=None, exclude_categories=())), st.text(st.characters(exclude_categories=())))
def test_join_never_raises(base: str, href: str) -> None:
    joined = join(base, href)
    assert joined is None or "#" not in joined
    assert absolute(href) is None or "#" not in str(absolute(href))


@given(hrefs_like)
def test_what_is_joined_stays_as_it_is(href: str) -> None:
    joined = join(BASE, href)
    if joined is not None and joined.startswith("http"):
        assert absolute(joined) == joined


@pytest.mark.parametrize(
    ("href", "encoding", "expected"),
    [
        ("ü?ü=ü#ü", "windows-1252", "%C3%BC?%FC=%FC"),
        ("?表", "shift_jis", "c.html?%95%5C"),
        ("?é", "shift_jis", "c.html?%26%23233%3B"),
        ("?\ud800", "windows-1252", "c.html?%26%2365533%3B"),
        ("?é", "utf-8", "c.html?%C3%A9"),
        ("?é", "UTF-16", "c.html?%C3%A9"),
        ("?é", "no-such-encoding", "c.html?%C3%A9"),
        ("?é", "idna", "c.html?%C3%A9"),
        ("?a=b", "windows-1252", "c.html?a=b"),
    ],
)
def test_queries_are_written_in_the_encoding_of_the_page(href: str, encoding: str, expected: str) -> None:
    assert Joiner(BASE, encoding).join(href) == "http://example.org/a/b/" + expected


def test_absolute() -> None:
    assert absolute(" HTTPS://Example.ORG:443/a/../b#c ") == "https://example.org/b"
    assert absolute("example.org") is None
