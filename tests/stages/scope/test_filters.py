"""Filters and their chain: who rejects what."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gossamer.model.errors import ConfigError
from gossamer.model.links import LINK_TYPES, OUTLINK, Link
from gossamer.options import OptionsError, convert
from gossamer.stages.scope.chain import DEPTH, Chain, scope_chain
from gossamer.stages.scope.filters import Depth, Hops, PathDepth, RepeatedPath
from gossamer.stages.scope.lists import ExcludedHost
from gossamer.stages.scope.options import FOLLOWED, ScopeOptions
from gossamer.stages.scope.roots import Roots

from .links import linked, named

EXAMPLE = "http://h.example/"


def chain_of(*, seed: str = EXAMPLE, **options: object) -> Chain:
    chosen = convert(ScopeOptions, options)
    roots = Roots(chosen.scope)
    roots.add_seed(named(seed))
    return scope_chain(chosen, roots)


@pytest.mark.parametrize(
    ("link", "options", "reason"),
    [
        (linked(EXAMPLE), {}, ""),
        (linked("ftp://h.example/"), {}, "scheme"),
        (linked("file:///etc/passwd"), {}, "scheme"),
        (linked("ftp://h.example/"), {"schemes": ("ftp",)}, ""),
        (linked("https://h.example/"), {"schemes": ("http",)}, "scheme"),
        (linked(EXAMPLE + "x" * (2048 - len(EXAMPLE))), {}, ""),
        (linked(EXAMPLE + "x" * (2049 - len(EXAMPLE))), {}, "length"),
        (linked(EXAMPLE + "ü" * 6), {"url_bytes_max": 50}, "length"),
        (linked(EXAMPLE, "canonical"), {}, "link_type"),
        (linked(EXAMPLE, "next"), {}, ""),
        (linked(EXAMPLE, "alternate"), {}, "link_type"),
        (linked(EXAMPLE, "alternate"), {"follow": ("alternate",)}, ""),
        (linked(EXAMPLE, "canonical"), {"follow": ("alternate",)}, "link_type"),
        (linked(EXAMPLE, OUTLINK), {}, "link_type"),
        (linked(EXAMPLE, OUTLINK), {"outlinks": True}, ""),
        (linked(EXAMPLE + "/".join(map(str, range(40)))), {}, ""),
        (linked(EXAMPLE + "/".join(map(str, range(41)))), {}, "path_depth"),
        (linked(EXAMPLE + "?" + "/" * 100), {}, ""),
        (linked(EXAMPLE + "a/b/a/b/a/b"), {"path_repeats_max": 3}, ""),
        (linked(EXAMPLE + "a/b/a/b/a/b/a"), {"path_repeats_max": 3}, "repeated_path"),
        (linked(EXAMPLE + "00/00/00/00/17/object.html"), {}, ""),
        (linked(EXAMPLE + "a/a/a/a?"), {"path_repeats_max": 3}, "repeated_path"),
        (linked(EXAMPLE + "?a/a/a/a/a/a"), {"path_repeats_max": 3}, ""),
        (linked("http://a.b.example/a/a/a"), {"scope": "any", "path_repeats_max": 3}, ""),
        (linked("http://a/b/a/a/a/c"), {"scope": "any", "path_repeats_max": 3}, ""),
        (linked("http://g.example/"), {}, "scope"),
        (linked("http://g.example/"), {"scope": "any"}, ""),
        (linked("http://g.example/", "seed"), {}, ""),
        (Link(named("http://g.example/"), "anchor", 1, 0, EXAMPLE), {"scope": "any", "own_site": True}, "own_site"),
        (Link(named(EXAMPLE), "anchor", 1, 0, EXAMPLE), {"scope": "any", "own_site": True}, ""),
        (Link(named("http://g.example/"), "anchor", 1, 0, EXAMPLE), {"scope": "any"}, ""),
        (linked(EXAMPLE, "redirect", hops=5), {}, ""),
        (linked(EXAMPLE, "redirect", hops=6), {}, "hops"),
        (linked(EXAMPLE, depth=3), {"depth_max": 3}, ""),
        (linked(EXAMPLE, depth=4), {"depth_max": 3}, "depth"),
        (linked(EXAMPLE, "seed", depth=0), {"depth_max": 0}, ""),
        (linked(EXAMPLE, depth=10**6), {}, ""),
        (linked(EXAMPLE + "a.pdf"), {"exclude": (r"\.pdf$",)}, "exclude"),
        (linked(EXAMPLE + "a.pdf", "seed"), {"exclude": (r"\.pdf$",)}, "exclude"),
        (linked(EXAMPLE + "a.pdf?x"), {"exclude": (r"\.pdf$", "^https:")}, ""),
        (linked(EXAMPLE + "a"), {"include": ("/a", "/b")}, ""),
        (linked(EXAMPLE + "b"), {"include": ("/a", "/b")}, ""),
        (linked(EXAMPLE + "c"), {"include": ("/a", "/b")}, "include"),
        (linked(EXAMPLE + "c", "seed"), {"include": ("/a", "/b")}, ""),
        (linked(EXAMPLE, "seed"), {"exclude_hosts": ("h.example",)}, "excluded_host"),
        (linked("http://x.h.example/"), {"exclude_hosts": ("h.example",), "scope": "any"}, ""),
        (linked("http://x.h.example./"), {"exclude_hosts": (".H.example",), "scope": "any"}, "excluded_host"),
    ],
)
def test_reason(link: Link, options: dict[str, object], reason: str) -> None:
    chain = chain_of(**options)
    assert chain.explain(link) == reason
    assert sum(chain.counts.values()) == 0
    assert chain.reason(link) == reason
    assert chain.counts == {name: int(name == reason) for name in chain.counts}
    assert chain.reason_but_depth(link) == ("" if reason == DEPTH else reason)
    assert sum(chain.counts.values()) == (1 if reason else 0)


def test_the_first_that_rejects_gives_the_reason_and_depth_is_the_last() -> None:
    link = linked("http://g.example/a.pdf", depth=9, hops=9)
    options = {"depth_max": 1, "exclude": ("pdf",)}
    assert chain_of(**options).reason(link) == "exclude"
    assert chain_of(depth_max=1).reason(link) == "scope"
    assert chain_of(depth_max=1, scope="any").reason(link) == "hops"
    assert chain_of(depth_max=1, scope="any", hops_max=9).reason(link) == "depth"
    with pytest.raises(AssertionError):
        Chain([Depth(1), Hops(1)])
    with pytest.raises(AssertionError):
        Chain([Hops(1), Hops(2)])


def test_filters_of_the_operator_stand_before_depth() -> None:
    class Odd:
        name = "a_bit_odd"

        def rejects(self, link: Link) -> bool:
            return len(link.url.text) % 2 == 1

    chain = scope_chain(ScopeOptions(scope="any", depth_max=0), Roots("any"), more=[Odd()])
    assert chain.reason(linked("http://h/a")) == "depth"
    assert chain.reason(linked("http://h/ab")) == chain.reason_but_depth(linked("http://h/ab")) == "a_bit_odd"


class Faulty:
    name = "faulty"

    def __init__(self, rejects: Callable[[Link], object]) -> None:
        self.rejects = rejects


def fails(_: Link) -> bool:
    raise ValueError("no")


def exits(_: Link) -> bool:
    raise SystemExit(3)


async def later(_: Link) -> bool:
    return False


@pytest.mark.parametrize(
    ("rejects", "why"),
    [
        (fails, "ValueError: no"),
        (exits, "SystemExit: 3"),
        (lambda _: "too far", "TypeError: it returned a str, not True or False"),
        (later, "TypeError: it returned a coroutine, not True or False"),
    ],
)
def test_a_filter_that_fails_is_named(rejects: Callable[[Link], object], why: str) -> None:
    chain = Chain([Faulty(rejects)])  # type: ignore[list-item]
    for judge in (chain.reason, chain.explain, chain.detail):
        with pytest.raises(RuntimeError, match=f"^the filter `faulty` failed on http://a.test/: {why}$"):
            judge(linked("http://a.test/"))


@pytest.mark.parametrize("link_type", LINK_TYPES)
def test_every_type_of_link_is_either_followed_or_configured(link_type: str) -> None:
    assert (chain_of().reason(linked(EXAMPLE, link_type)) == "") == (link_type in FOLLOWED)
    assert chain_of(follow=(link_type,)).reason(linked(EXAMPLE, link_type)) == ""


def test_traps_are_cheap_to_tell() -> None:
    url = EXAMPLE + "/" * 2000
    assert PathDepth(40).rejects(linked(url))
    assert RepeatedPath(3).rejects(linked(url))


def test_hosts_are_excluded_while_the_crawl_runs() -> None:
    excluded = ExcludedHost()
    chain = scope_chain(ScopeOptions(scope="any", exclude_hosts=("[::1]",)), Roots("any"), excluded)
    assert chain.reason(linked("http://[::1]:81/")) == "excluded_host"
    link = linked("http://a.b.example/")
    assert chain.reason(link) == ""
    before = excluded.revision
    excluded.add(".B.Example")
    assert excluded.revision > before
    assert chain.reason(link) == "excluded_host"
    assert chain.reason(linked("http://b.example/")) == "excluded_host"
    assert chain.reason(linked("http://ab.example/")) == ""
    again = ExcludedHost(["münchen.example"])
    again.load(excluded.dump())
    assert [again.covers(host) for host in ("a.b.example", "[::1]", "xn--mnchen-3ya.example", "c.example")] == [
        True, True, True, False,
    ]  # fmt: skip


@pytest.mark.parametrize(
    "host", ["", ".", "https://example.org/", "a b", "u@h", "h/x", "h:81", "::1", "h?", "*.h", "exa(mple", "a,b"]
)
def test_what_is_no_host_is_said_to_be_none(host: str) -> None:
    with pytest.raises(ConfigError, match="is not a host"):
        ExcludedHost([host])
    for key in ("exclude_hosts", "only_hosts"):
        with pytest.raises(OptionsError, match=f"{key}: .* is not a host"):
            convert(ScopeOptions, {key: [host]})


@pytest.mark.parametrize(
    ("referrer", "detail"),
    [
        ("", "it is redirect number 6 in a row; at most 5 are followed"),
        (
            "http://h.example/old",
            "http://h.example/old redirects to it, and that is redirect number 6 in a row; at most 5 are followed",
        ),
    ],
)
def test_a_redirect_too_many_is_explained(referrer: str, detail: str) -> None:
    assert Hops(5).detail(Link(named(EXAMPLE), "redirect", 1, 6, referrer)) == detail


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("http://other.example/a.css", ""),
        ("http://other.example/a.pdf", "exclude"),
        ("ftp://h.example/a.css", "scheme"),
        (EXAMPLE + "x" * 2048, "length"),
    ],
)
def test_of_a_pages_resource_the_address_alone_is_judged(address: str, reason: str) -> None:
    assert chain_of(exclude=(r"\.pdf$",)).rejects_resource(linked(address, "canonical", 9)) == reason
