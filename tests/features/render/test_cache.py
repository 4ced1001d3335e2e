"""What a resource may be used again for, and for how long (RFC 9111)."""

from __future__ import annotations

import pytest

from gossamer.features.render.cache import OVERHEAD_BYTES, ResourceCache
from gossamer.model.visits import Reply

NOW = 1_700_000_000.0
"""Tue, 14 Nov 2023 22:13:20 GMT."""
URL = "https://a.test/app.js"


def reply(*headers: tuple[str, str], status: int = 200, body: bytes = b"x", truncated: str = "") -> Reply:
    return Reply(URL, status, headers, body, "127.0.0.1", NOW, 0.1, 10, truncated=truncated)


@pytest.mark.parametrize(
    ("headers", "fresh_s"),
    [
        ((("Cache-Control", "max-age=60"),), 60),
        ((("Cache-Control", "public, Max-Age=60, immutable"), ("Age", "20")), 40),
        ((("Cache-Control", "max-age=60"), ("Age", "\u00b2")), 60),  # A digit, but no number.
        ((("Cache-Control", "max-age=60"), ("Expires", "Tue, 14 Nov 2023 23:13:20 GMT")), 60),
        ((("Expires", "Tue, 14 Nov 2023 23:13:20 GMT"), ("Date", "Tue, 14 Nov 2023 22:13:10 GMT")), 3_610),
        ((("Expires", "Tue, 14 Nov 2023 23:13:20 GMT"),), 3_600),
        ((("Last-Modified", "Tue, 14 Nov 2023 21:13:20 GMT"),), 360),
        ((("Last-Modified", "Tue, 14 Nov 2000 21:13:20 GMT"),), 86_400),
        ((("Vary", "Accept-Encoding"),), 500),
        ((), 500),
    ],
)
def test_a_reply_is_fresh_for_as_long_as_its_server_says(headers: tuple[tuple[str, str], ...], fresh_s: float) -> None:
    cache = ResourceCache(1 << 20, 500.0)
    cache.store(URL, reply(*headers), NOW)
    found = cache.find(URL)
    assert found is not None
    assert found.fresh_until == NOW + fresh_s


@pytest.mark.parametrize(
    "one",
    [
        reply(("Cache-Control", "no-store")),
        reply(("Cache-Control", "max-age=60"), ("Cache-Control", "No-Store")),
        reply(("Vary", "*"), ("Cache-Control", "max-age=60")),
        reply(status=500),
        reply(("Cache-Control", "max-age=60"), status=206),
        reply(truncated="length"),
        reply(("Cache-Control", "no-cache")),
        reply(("Expires", "0")),
        reply(("Cache-Control", "max-age=x")),
        reply(("Cache-Control", "max-age=\u00b2")),
        reply(body=b"x" * (1 << 20)),
    ],
    ids=str,
)
def test_what_must_not_or_cannot_be_used_again_is_not_stored(one: Reply) -> None:
    cache = ResourceCache(1 << 20, 500.0)
    cache.store(URL, reply(), NOW)
    cache.store(URL, one, NOW)
    assert cache.find(URL) is None


def test_a_stale_reply_is_validated_and_fresh_again() -> None:
    cache = ResourceCache(1 << 20, 500.0)
    modified = ("Last-Modified", "Tue, 14 Nov 2023 21:13:20 GMT")
    cache.store(URL, reply(("ETag", '"1"'), modified, ("Cache-Control", "no-cache"), ("X", "old")), NOW)
    stale = cache.find(URL)
    assert stale is not None
    assert stale.fresh_until <= NOW
    assert stale.conditions == (("If-None-Match", '"1"'), ("If-Modified-Since", modified[1]))
    news = reply(("Cache-Control", "max-age=60"), ("Content-Length", "0"), ("X", "new"), status=304, body=b"")
    confirmed = cache.confirm(URL, news, NOW + 10)
    assert confirmed is not None
    assert (confirmed.status, confirmed.body) == (200, b"x")
    assert confirmed.headers == (("Cache-Control", "max-age=60"), ("X", "new"), ("ETag", '"1"'), modified)
    again = cache.find(URL)
    assert again is not None
    assert again.fresh_until == NOW + 70
    assert cache.confirm("https://a.test/other.js", news, NOW) is None


def test_what_a_304_says_of_its_content_is_not_of_the_stored_one() -> None:
    cache = ResourceCache(1 << 20, 500.0)
    script = ("Content-Type", "text/javascript")
    cache.store(URL, reply(("ETag", '"1"'), script, ("Cache-Control", "no-cache")), NOW)
    news = reply(("Content-Type", "text/html"), ("Content-Language", "en"), ("X", "new"), status=304, body=b"")
    confirmed = cache.confirm(URL, news, NOW + 10)
    assert confirmed is not None
    assert confirmed.header("content-type") == "text/javascript"
    assert (confirmed.header("content-language"), confirmed.header("x")) == (None, "new")


def test_memory_is_bounded_and_what_was_not_used_for_longest_goes_first() -> None:
    cache = ResourceCache(2 * (OVERHEAD_BYTES + 100), 500.0)
    for name in "ab":
        cache.store(name, reply(body=b"x" * 100), NOW)
    assert cache.find("a") is not None
    cache.store("c", reply(body=b"x" * 100), NOW)
    assert [name for name in "abc" if cache.find(name)] == ["a", "c"]
    cache.store("c", reply(body=b"x" * 100), NOW)
    assert cache.find("a") is not None


def test_without_memory_nothing_is_stored() -> None:
    cache = ResourceCache(0, 500.0)
    cache.store(URL, reply(), NOW)
    assert cache.find(URL) is None


FRESH = ("Cache-Control", "max-age=60")


@pytest.mark.parametrize(
    ("headers", "shared"),
    [
        ((FRESH,), True),
        ((("Cache-Control", "public, max-age=60"), ("Vary", "Accept-Encoding")), True),
        ((("Expires", "Tue, 14 Nov 2023 23:13:20 GMT"),), True),
        ((), False),
        ((("Last-Modified", "Tue, 14 Nov 2000 21:13:20 GMT"),), False),
        ((("Cache-Control", "private, max-age=60"),), False),
        ((("Cache-Control", 'private="set-cookie", max-age=60'),), False),
        ((FRESH, ("Vary", "Accept-Encoding"), ("Vary", "Origin, Cookie")), False),
        ((FRESH, ("Vary", "authorization")), False),
    ],
)
def test_a_reply_of_a_session_is_for_others_only_if_its_server_says_so(
    headers: tuple[tuple[str, str], ...], shared: bool
) -> None:
    cache = ResourceCache(1 << 20, 500.0)
    cache.store(URL, reply(*headers), NOW, "one")
    assert cache.find(URL, "one") is not None
    assert (cache.find(URL, "two") is not None) == shared
    assert cache.find(URL) is None, "pages of other sites have no session"


def test_a_reply_without_a_session_is_for_no_session() -> None:
    cache = ResourceCache(1 << 20, 500.0)
    cache.store(URL, reply(FRESH, body=b"nobody"), NOW)
    assert cache.find(URL, "one") is None
    cache.store(URL, reply(("ETag", "1"), body=b"one"), NOW, "one")
    confirmed = cache.confirm(URL, reply(FRESH, status=304), NOW, "one")
    assert confirmed is not None
    assert confirmed.body == b"one"
    assert cache.confirm(URL, reply(FRESH, status=304), NOW, "two") is not None
    assert cache.confirm(URL, reply(FRESH, status=304), NOW) is not None


IMAGE, ANY, OTHER = ("Accept", "image/*,*/*;q=0.8"), ("Accept", "*/*"), ("Origin", "https://b.test")
OPEN = ("Access-Control-Allow-Origin", "*")


@pytest.mark.parametrize(
    ("headers", "first", "second", "reused"),
    [
        ((), (ANY,), (IMAGE,), True),
        ((("Vary", "Accept-Encoding, Accept"),), (ANY,), (IMAGE,), False),
        ((("Vary", "Accept"), ("Vary", "Origin")), (ANY, OTHER), (OTHER, ANY), True),
        ((("Vary", "Referer"),), (ANY,), (ANY, ("Referer", "https://a.test/")), False),
        # A reply that names no origin, or another one, is none for a request of this one: the browser would refuse it.
        ((), (), (OTHER,), False),
        ((OPEN,), (), (OTHER,), True),
        ((OPEN, ("Vary", "Origin")), (), (OTHER,), False),
        ((("Access-Control-Allow-Origin", "https://c.test"),), (("Origin", "https://c.test"),), (OTHER,), False),
    ],
)
def test_a_reply_is_for_requests_with_the_headers_that_it_varies_by(
    headers: tuple[tuple[str, str], ...], first: tuple[tuple[str, str], ...], second: tuple[tuple[str, str], ...],
    reused: bool,
) -> None:  # fmt: skip
    cache = ResourceCache(1 << 20, 500.0)
    cache.store(URL, reply(*headers, ("ETag", "1")), NOW, sent=first)
    assert cache.find(URL, sent=first) is not None
    assert (cache.find(URL, sent=second) is not None) == reused
    assert (cache.confirm(URL, reply(status=304), NOW, sent=second) is not None) == reused
