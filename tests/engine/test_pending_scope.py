"""Beyond the scope: what redirects of seeds bring in is found whoever came first; what is kept for it is bounded."""

from __future__ import annotations

from pathlib import Path

import pytest

import gossamer.engine.pending_scope as module
from gossamer.engine.pending_scope import PendingScope
from gossamer.model.links import SEED_ARGUMENT, SEED_FILE, Link
from gossamer.stages.scope.chain import scope_chain
from gossamer.stages.scope.options import ScopeOptions
from gossamer.stages.scope.roots import Roots
from gossamer.state.epoch import Epochs
from gossamer.state.store import Store
from gossamer.testing import page, reply
from gossamer.url.name import Namer
from tests.engine.ring import Ring, url_of


def redirect(to: str) -> object:
    return reply(status=301, headers=[("Location", to)])


def ring(tmp_path: Path, pages: dict[str, object], scope: str = "host") -> Ring:
    return Ring(tmp_path, pages, scope={"scope": scope, "seed_redirects": "site"})  # type: ignore[arg-type]


def fetched(found: Ring) -> dict[str, str]:
    return {row.url: row.outcome for row in found.rows}


WEB = {
    "http://a.test/": page("http://b.test/deep/x", "http://elsewhere.test/"),
    "http://c.test/": redirect("http://b.test/start"),
    "http://b.test/start": page(),
    "http://b.test/deep/x": page("/deep/y"),
    "http://b.test/deep/y": page(),
}


@pytest.mark.promise("What is fetched", "Redirects of seeds widen the scope for every page, whichever was found first.")
@pytest.mark.parametrize("order", [("http://a.test/", "http://c.test/"), ("http://c.test/", "http://a.test/")])
def test_a_link_that_came_before_the_redirect_that_brings_it_in_is_followed(
    tmp_path: Path, order: tuple[str, str]
) -> None:
    found = ring(tmp_path, WEB)
    found.crawl(*order)
    assert fetched(found) == {
        "http://a.test/": "fetched",
        "http://c.test/": "redirected",
        "http://b.test/start": "fetched",
        "http://b.test/deep/x": "fetched",
        "http://b.test/deep/y": "fetched",
    }
    assert not found.memory.pending_scope.is_open


def test_what_the_redirect_does_not_bring_in_stays_out(tmp_path: Path) -> None:
    found = ring(tmp_path, WEB, scope="prefix")
    found.crawl("http://a.test/", "http://c.test/")
    assert "http://b.test/start" in fetched(found)
    assert "http://elsewhere.test/" not in fetched(found)
    narrow = WEB | {"http://c.test/": redirect("http://b.test/shop/")}
    (tmp_path / "2").mkdir()
    found = ring(tmp_path / "2", narrow, scope="prefix")
    found.crawl("http://a.test/", "http://c.test/")
    assert "http://b.test/deep/x" not in fetched(found)


CHAIN = {
    "http://a.test/": page("http://a.test/r"),
    "http://a.test/r": redirect("http://b.test/s"),
    "http://b.test/s": redirect("http://c.test/"),
    "http://c.test/": page("/inner"),
    "http://c.test/inner": page(),
}


@pytest.mark.parametrize("when", ["before it is visited", "after it was visited"])
def test_a_seed_that_was_found_as_an_ordinary_link_widens_the_scope_all_the_same(tmp_path: Path, when: str) -> None:
    found = ring(tmp_path, CHAIN)
    found.seed("http://a.test/")
    if when == "after it was visited":
        found.crawl()
        assert fetched(found) == {"http://a.test/": "fetched", "http://a.test/r": "redirected"}
        assert not found.counters.notes
    else:
        found.pipeline.discovery.discover([Link(url_of("http://a.test/r"), "anchor", 1)])
    found.crawl("http://a.test/r")
    assert fetched(found) == {
        "http://a.test/": "fetched",
        "http://a.test/r": "redirected",
        "http://b.test/s": "redirected",
        "http://c.test/": "fetched",
        "http://c.test/inner": "fetched",
    }
    assert len(found.counters.notes) == 2
    assert found.web.counts["http://a.test/r"] == 1, "it is not asked twice for that"


def test_a_loop_of_seeds_that_redirect_to_each_other_ends(tmp_path: Path) -> None:
    found = ring(tmp_path, {"http://a.test/": redirect("http://b.test/"), "http://b.test/": redirect("http://a.test/")})
    found.crawl("http://a.test/", "http://b.test/")
    found.crawl("http://b.test/", "http://a.test/")
    assert fetched(found) == {"http://a.test/": "redirected", "http://b.test/": "redirected"}
    assert not found.memory.pending_scope.is_open


def test_with_no_seed_open_nothing_is_kept(tmp_path: Path) -> None:
    found = ring(tmp_path, {"http://a.test/": page(*(f"http://x{number}.test/" for number in range(50)))})
    found.crawl("http://a.test/")
    assert found.memory.pending_scope._counts.kept == 0


class Opened:
    def __init__(self, path: Path) -> None:
        self.store = Store(path, 1 << 20, 1 << 20)
        self.epochs = Epochs(self.store)
        self.pending_scope = PendingScope(self.epochs)
        self.roots = Roots("host", "site")
        self.chain = scope_chain(ScopeOptions(scope="host"), self.roots)

    def commit(self) -> None:
        self.pending_scope.cut()
        self.epochs.close_at_once()


def test_what_is_kept_survives_a_death_and_what_no_commit_holds_does_not(tmp_path: Path) -> None:
    opened = Opened(tmp_path)
    seed, link = url_of("http://seed.test/"), Link(url_of("http://b.test/x"), "anchor", 3, 0, "http://a.test/")
    opened.pending_scope.open(seed, SEED_FILE)
    opened.pending_scope.open(seed, SEED_FILE)
    opened.pending_scope.keep(link)
    opened.pending_scope.keep(Link(link.url, "anchor", 2, 0, "http://nearer.test/"))
    opened.commit()
    opened.pending_scope.keep(Link(url_of("http://b.test/later"), "anchor", 1))
    opened.store.close()
    opened = Opened(tmp_path)
    assert opened.pending_scope.seed(seed) == SEED_FILE
    assert opened.pending_scope.seed(link.url) == 0
    opened.roots.widen(seed, url_of("http://b.test/"), SEED_ARGUMENT)
    opened.pending_scope.widen(url_of("http://b.test/"), opened.chain, Namer())
    regained = opened.pending_scope.take_regained()
    assert [(one.url.text, one.depth, one.referrer) for one in regained] == [
        ("http://b.test/x", 2, "http://nearer.test/")
    ]
    assert opened.pending_scope.take_regained() == []
    opened.pending_scope.keep(Link(url_of("http://far.test/"), "anchor", 1))
    opened.pending_scope.conclude(seed)
    assert not opened.pending_scope.is_open
    opened.commit()
    assert not list(opened.store.scan("scope", b"\0\0", b"\xff\xff"))
    opened.store.close()


def test_what_is_kept_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LINKS_MAX", 10)
    opened = Opened(tmp_path)
    opened.pending_scope.open(url_of("http://seed.test/"), SEED_ARGUMENT)
    for number in range(25):
        opened.pending_scope.keep(Link(url_of(f"http://b.test/{number}"), "anchor", 1))
    opened.commit()
    assert len(list(opened.store.scan("scope", b"\0\0", b"\xff\xff"))) == 11
    assert opened.pending_scope._counts.lost == 15
    opened.store.close()
