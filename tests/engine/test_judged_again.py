"""Every filter that can change while a crawl runs holds for what is queued too, and `why` says what it did."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from gossamer.model.links import SEED_ARGUMENT, Link
from gossamer.model.visits import Reply
from gossamer.options import convert, keys_of
from gossamer.stages.scope.chain import scope_chain
from gossamer.stages.scope.filters import FILTERS, LIVE_KEYS, judges_again
from gossamer.stages.scope.lists import Lists, Whitelist
from gossamer.stages.scope.options import ScopeOptions
from gossamer.stages.scope.pages import WantedLanguages
from gossamer.stages.scope.roots import Roots
from gossamer.stages.scope.traps import Trapped
from gossamer.testing import page, reply
from gossamer.testing.fakes import Answers
from tests.engine.ring import Ring, url_of

ROOT = "http://a.example/"
LIVE = {
    "include": (["kept"], "x", "kept"),
    "exclude": (["x$"], "x", "kept"),
    "useless_paths": (["share_links"], "x?share=email", "kept"),
    "media_types": (["text/html"], "x.png", "kept"),
    "depth_max": (1, "deep", "kept"),
    "hops_max": (1, "twice", "once"),
    "url_bytes_max": (40, "x" * 40, "kept"),
    "path_segments_max": (2, "a/b/c", "kept"),
    "path_repeats_max": (1, "a/a/b", "kept"),
}
"""Live keys of the scope: another value, a path that it rejects, and one that it lets in."""
WITHOUT_QUEUE = {*WantedLanguages.keys}
"""Keys that judge pages when they have come."""


def moved(to: str) -> Reply:
    return reply(b"", 301, (("Location", to),))


def change(ring: Ring, **scope: object) -> None:
    """Set live keys, as `gossamer set` does."""
    options = convert(ScopeOptions, {"scope": "any", "useless_paths": [], **scope})
    ring.chain.adopt(scope_chain(options, ring.roots, ring.exclusions, [Trapped(ring.traps)]))
    ring.pipeline.judges_again = True


def queue(ring: Ring, key: str, paths: Iterable[str]) -> None:
    for path in paths:
        depth = 2 if path == "deep" else 1
        hops = {"twice": 2, "once": 1}.get(path, 0)
        ring.pipeline.discovery.discover(
            [Link(url_of(ROOT + path), "redirect" if hops else "anchor", depth, hops, ROOT)]
        )
    assert ring.frontier.counts.pending == 2, key


@pytest.mark.promise("What is fetched", "Every filter that can change during a crawl also judges queued URLs.")
@pytest.mark.parametrize("key", sorted(LIVE_KEYS - WITHOUT_QUEUE))
def test_every_live_key_of_the_scope_holds_for_what_is_queued(tmp_path: Path, key: str) -> None:
    value, rejected, kept = LIVE[key]
    pages: dict[str, Answers] = {ROOT + rejected: page(), ROOT + kept: page()}
    with Ring(tmp_path, pages, scope={"useless_paths": []}) as ring:
        queue(ring, key, (rejected, kept))
        change(ring, **{key: value})
        told = ring.explainer.why(ROOT + rejected)
        assert told["state"] == "queued"
        if key not in ("include", "media_types"):  # Seeds are let in, and it may be one.
            assert "rejects it now" in str(told["reason"])
        ring.run(ring.turns())
        assert ring.outcomes == {ROOT + rejected: "excluded", ROOT + kept: "fetched"}
        told = ring.explainer.why(ROOT + rejected)
        assert (told["state"], told["rule"]) == ("excluded", "excluded")
        assert "rejects it now" in str(told["reason"])


def test_every_option_that_makes_a_filter_is_declared() -> None:
    keys = {key for declared in FILTERS for key in declared.keys}
    assert keys <= set(keys_of(ScopeOptions))
    assert keys | WITHOUT_QUEUE >= LIVE_KEYS, "declare the new key on its filter"
    assert set(LIVE) == LIVE_KEYS - WITHOUT_QUEUE
    every = convert(
        ScopeOptions, {"scope": "host", "own_site": True, **{key: value for key, (value, _, _) in LIVE.items()}}
    )
    made = scope_chain(every, Roots("host"))
    assert {type(one) for one in made.filters} == {*FILTERS} - {Whitelist}
    assert all(judges_again(one) for one in made.filters if not LIVE_KEYS.isdisjoint(getattr(one, "keys", ())))


def test_a_filter_that_stands_behind_one_that_is_not_asked_again_is_asked(tmp_path: Path) -> None:
    with Ring(tmp_path, {ROOT + "x": page()}) as ring:
        ring.pipeline.discovery.discover([Link(url_of(ROOT + "x"), "anchor", 1, 0, "http://other.example/")])
        change(ring, own_site=True, exclude=["x$"])
        ring.run(ring.turns())
        assert ring.outcomes == {ROOT + "x": "excluded"}


def test_the_shortest_way_counts_that_is_known_by_then(tmp_path: Path) -> None:
    with Ring(tmp_path, {ROOT + "x": page()}) as ring:
        for depth, hops in ((5, 3), (1, 0)):
            ring.pipeline.discovery.discover([Link(url_of(ROOT + "x"), "anchor", depth, hops, ROOT)])
        change(ring, depth_max=1, hops_max=0)
        ring.run(ring.turns())
        assert ring.outcomes == {ROOT + "x": "fetched"}


def test_a_redirect_that_is_one_too_many_is_named_by_why(tmp_path: Path) -> None:
    pages = {f"{ROOT}{n}": moved(f"/{n + 1}") for n in range(9)}
    with Ring(tmp_path, pages, scope={"hops_max": 2}) as ring:
        ring.crawl(ROOT + "0")
        told = ring.explainer.why(ROOT + "3")
        assert (told["state"], told["rule"]) == ("rejected", "hops")
        assert (told["hops"], told["referrer"]) == (3, ROOT + "2")
        assert told["reason"] == (
            f"the filter `hops` rejects it: {ROOT}2 redirects to it, and that is redirect number 3 in a row; "
            "at most 2 are followed"
        )
        assert ring.stages.history.last_stop(url_of(ROOT + "2")) is None, "it was followed"
        change(ring, hops_max=5)
        told = ring.explainer.why(ROOT + "3")
        assert told["state"] == "unknown"
        assert f"{ROOT}2 redirected to it" in str(told["reason"])
        ring.pipeline.discovery.discover([Link(url_of(ROOT + "3"), "seed", 0, 0, "", SEED_ARGUMENT)])
        ring.run(ring.turns())
        assert ring.explainer.why(ROOT + "3")["state"] == "redirected"


def test_a_redirect_to_itself_says_why_it_ended(tmp_path: Path) -> None:
    with Ring(tmp_path, {ROOT: moved(ROOT)}, scope={"hops_max": 2}) as ring:
        ring.crawl(ROOT)
        assert ring.explainer.why(ROOT)["reason"] == f"it redirects once more, to {ROOT}: at most 2 are followed"
        assert [row.attempt for row in ring.rows] == [1, 1, 1], "each is the first at its target"


def test_chains_whose_files_differ_judge_again() -> None:
    def made_of(lists: Lists, **options: object) -> bytes:
        return scope_chain(convert(ScopeOptions, options), Roots("host"), lists=lists).made_of

    plain = made_of(Lists())
    assert plain == made_of(Lists())
    assert plain == made_of(Lists(), traps=False), "traps have a gate of their own"
    assert (
        len({plain, made_of(Lists(exclude=("x",))), made_of(Lists(include=("x",))), made_of(Lists(), hops_max=1)}) == 4
    )
