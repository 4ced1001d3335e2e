"""Patterns of what is forgotten, and the filter that keeps it out until its date."""

from __future__ import annotations

import pytest

from gossamer.model.errors import ConfigError
from gossamer.model.links import Link
from gossamer.stages.scope.forgotten import Forgotten, ForgottenEntry, Matching, expression, moment
from gossamer.url.name import Namer

NAMER = Namer()


def matches(pattern: str, address: str) -> bool:
    url = NAMER.name(address)
    assert url is not None
    return Matching([pattern]).matches(url.text, url.key)


@pytest.mark.parametrize(
    ("pattern", "address", "expected"),
    [
        ("example.org", "https://example.org/", True),
        ("example.org", "http://example.org:8080/a?b=c", True),
        ("example.org", "ftp://example.org/file", True),
        ("example.org", "https://www.example.org/", False),
        ("example.org", "https://example.org.evil.test/", False),
        ("example.org", "https://evil.test/example.org/", False),
        ("example.org", "https://evil.test/?u=https://example.org/", False),
        ("EXAMPLE.org", "https://example.org/", True),
        ("*.example.org", "https://example.org/", True),
        ("*.example.org", "https://a.b.example.org/x", True),
        (".example.org", "https://a.example.org/x", True),
        (".example.org", "https://notexample.org/x", False),
        ("[2001:db8::1]", "http://[2001:db8::1]/x", True),
        ("https://example.org/a", "https://example.org/a", True),
        ("https://example.org/a", "https://example.org/ab", False),
        ("https://example.org/a.c", "https://example.org/abc", False),
        ("https://example.org/a/*", "https://example.org/a/b/c?d", True),
        ("https://example.org/a/*", "https://example.org/b", False),
        ("https://*.example.org/private/*", "https://www.example.org/private/1", True),
        ("HTTPS://Example.org/a", "https://example.org/a", True),
        ("/private/", "https://any.test/private/page", True),
        (r"[?&]person=\d+", "https://any.test/list?person=17", True),
        (r"[?&]person=\d+", "https://any.test/list?person=x", False),
    ],
)
def test_a_pattern_means_a_host_a_domain_addresses_or_a_regular_expression(
    pattern: str, address: str, expected: bool
) -> None:
    assert matches(pattern, address) is expected


def test_an_address_is_found_by_its_canonical_form_too() -> None:
    assert Matching(["https://example.org/a"]).matches("https://example.org/a?utm_source=x", "https://example.org/a")


@pytest.mark.parametrize("pattern", ["", "   ", "(unclosed", "a*+*"])
def test_what_is_no_pattern_is_refused(pattern: str) -> None:
    with pytest.raises(ConfigError):
        expression(pattern)


def test_a_date_is_a_time_in_utc() -> None:
    assert moment("2030-12-31") == "2030-12-31T00:00:00+00:00"
    assert moment("2030-12-31T01:00:00+02:00") == "2030-12-30T23:00:00+00:00"
    with pytest.raises(ConfigError, match="--until soon: expected a date"):
        moment("soon")


def test_an_entry_holds_until_its_date() -> None:
    """The clock is the test's: a second before the date the page is out, at the date it is not."""
    url = NAMER.name("https://example.org/a")
    assert url is not None
    now = [0.0]
    entry = ForgottenEntry(
        "example.org", "2026-01-01T00:00:00+00:00", "2030-01-01T00:00:00+00:00", "a letter", "A. Owner"
    )
    forgotten = Forgotten([entry], lambda: now[0])
    now[0] = entry.until_at - 1.0
    assert forgotten.rejects(Link(url, "anchor", 0))
    says = "forgotten on 2026-01-01, reason: a letter, for A. Owner, until 2030-01-01"
    assert forgotten.detail(Link(url, "anchor", 0)) == says
    now[0] = entry.until_at
    assert not forgotten.rejects(Link(url, "anchor", 0))
    assert forgotten.detail(Link(url, "anchor", 0)) == ""


def test_of_several_entries_the_one_that_lasts_longest_counts() -> None:
    short = ForgottenEntry("example.org", "2026-01-01T00:00:00+00:00", "2027-01-01T00:00:00+00:00")
    forever = ForgottenEntry("*.example.org", "2026-02-01T00:00:00+00:00")
    forgotten = Forgotten([forever, short], lambda: short.until_at + 1.0)
    assert forgotten.entry("https://example.org/", "https://example.org/") == forever
    assert forgotten.entry("https://other.test/", "https://other.test/") is None
    assert forever.says() == "forgotten on 2026-02-01, for good"
