"""Whitelist: sites by the million."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.model.errors import ConfigError
from gossamer.stages.scope import lists as whitelist_module
from gossamer.stages.scope.chain import scope_chain
from gossamer.stages.scope.lists import Lists, Whitelist, site_of_line
from gossamer.stages.scope.options import ScopeOptions
from gossamer.stages.scope.roots import Roots
from gossamer.url.site import site_of

from .links import linked, named


def test_every_line_stands_for_its_site() -> None:
    listed = Whitelist(
        ["example.org", "www.Example.co.uk", "a.b.github.io", "münchen.example", "127.0.0.1", "example.org."]
    )
    assert len(listed) == 5
    inside = [
        "http://example.org/", "https://a.b.example.org:81/x", "http://example.co.uk/", "http://b.github.io/",
        "http://x.b.github.io/", "http://xn--mnchen-3ya.example/", "http://127.0.0.1/",
    ]  # fmt: skip
    outside = ["http://example.com/", "http://co.uk/", "http://github.io/", "http://c.github.io/", "http://127.0.0.2/"]
    for _ in range(2):
        assert [text for text in inside if not listed.covers(named(text))] == []
        assert [text for text in outside if listed.covers(named(text))] == []


def test_it_is_a_filter_and_seeds_need_not_pass() -> None:
    chain = scope_chain(ScopeOptions(scope="any"), Roots("any"), lists=Lists(whitelist=Whitelist(["example.org"])))
    assert chain.reason(linked("http://www.example.org/")) == ""
    assert chain.reason(linked("http://www.example.com/")) == "whitelist"
    assert chain.reason(linked("http://www.example.com/", "seed")) == ""
    assert chain.counts["whitelist"] == 1
    assert chain.detail(linked("http://a.example.com/")) == "the site example.com is not among the 1 listed"


def test_memory_is_eight_bytes_a_site_and_verdicts_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whitelist_module, "VERDICTS_MAX", 8)
    listed = Whitelist(f"site{n}.example" for n in range(2_000))
    assert len(listed) * listed._fingerprints.itemsize == 8 * 2_000
    for n in range(4_000):
        assert listed.covers(named(f"http://x.site{n}.example/")) == (n < 2_000)
    assert len(listed._verdicts) <= 8


@pytest.mark.parametrize(
    "line", ["http://example.org/", "a b", "", ".", ".org", "a..b", "example.org/x", "h:81", "u@h", "*.org"]
)
def test_what_is_no_domain_is_said_to_be_none(line: str) -> None:
    with pytest.raises(ConfigError, match="is not a domain"):
        Whitelist([line])


@given(st.text(st.sampled_from("ab.-uk1co"), min_size=1, max_size=14))
def test_a_line_means_the_site_that_its_host_has(line: str) -> None:
    try:
        site = site_of_line(line)
    except ConfigError:
        return
    assert site == site_of(site)
