"""Traps in the ring: cut off, told, kept over a restart, released."""

from __future__ import annotations

from pathlib import Path

import pytest

from gossamer.model.pages import PageRow
from gossamer.model.visits import Content
from gossamer.stages.scope.traps import SCORE_MIN
from gossamer.testing.fakes import Answers, page, reply
from tests.engine.ring import Ring, url_of

ROOT = "http://example.org/"
MONTHS = 1_000


def month(number: int) -> str:
    return f"/cal/{1900 + number // 12 - 60}/{number % 12 + 1:02d}/"


def site() -> dict[str, Answers]:
    """A calendar of many years, and twenty pages that say something, in a chain."""
    middle = MONTHS // 2
    pages: dict[str, Answers] = {ROOT: page(month(middle), "/good/0")}
    for number in range(MONTHS):
        to = [month(other) for other in (number - 1, number + 1, number + 12) if 0 <= other < MONTHS]
        pages[ROOT + month(number)[1:]] = page(*to, title="Calendar", text="There are no events in this month")
    for number in range(20):
        pages[f"{ROOT}good/{number}"] = page(
            f"/good/{number + 1}", text=f"{'abcdefghijklmnopqrst'[number] * 5} and more"
        )
    return pages


TRAP = "example.org/cal/{n}/{n}/"


def ends(ring: Ring) -> dict[str, int]:
    counts: dict[str, int] = {}
    for outcome in ring.outcomes.values():
        counts[outcome] = counts.get(outcome, 0) + 1
    return counts


@pytest.mark.promise("What is fetched", "Traps are cut off, and no other page of their host.")
def test_a_trap_ends_and_the_good_pages_do_not(tmp_path: Path) -> None:
    with Ring(tmp_path, site()) as ring:
        ring.crawl(ROOT)
        assert [trap.name for trap in ring.traps.all] == [TRAP]
        assert {f"{ROOT}good/{number}" for number in range(20)} <= set(ring.outcomes)
        assert ends(ring)["fetched"] < 400
        assert ends(ring)["trapped"] >= 1
        assert ring.adds_up()
        says = ring.traps.all[0].says()
        assert says.startswith(f"{TRAP} is a trap (score ")
        assert ring.traps.all[0].score >= SCORE_MIN
        assert any(note.startswith(says) for note in ring.counters.notes)
        queued = next(url for url, outcome in ring.outcomes.items() if outcome == "trapped")
        assert ring.web.counts[queued] == 0, "what was queued of it is not asked for"
        told = ring.explainer.why(queued)
        assert told["state"] == "trapped"
        assert says in str(told["reason"])
        never = ring.explainer.why(f"{ROOT}cal/1999/01/")
        assert (never["state"], never["rule"]) == ("rejected", "trapped")
        assert says in str(never["reason"])
        assert ring.chain.counts["trapped"] > 0


@pytest.mark.heavy
@pytest.mark.promise("What is fetched", "A trap is named, is kept over a restart and can be released.")
@pytest.mark.parametrize("name", [TRAP, "example.org"])
def test_what_is_released_is_crawled_to_its_end(tmp_path: Path, name: str) -> None:
    with Ring(tmp_path, site()) as ring:
        ring.crawl(ROOT)
        now = ring.clock.now()
        release = ring.trapping.release_trap(
            name,
            ring.namer,
            ring.history,
            ring.pipeline.discovery.discover,
            lambda link: ring.frontier.add(link, 0, now),
        )
        assert ring.run(release) == [TRAP]
        assert ring.explainer.why(f"{ROOT}cal/2026/01/")["rule"] != "trapped"
        ring.run(ring.turns())
        assert ends(ring) == {"fetched": MONTHS + 21, "http_error": 1}
        assert max(ring.web.counts.values()) == 1
        assert ring.adds_up()


@pytest.mark.promise("What is fetched", "A trap is named, is kept over a restart and can be released.")
def test_a_trap_and_its_evidence_outlive_the_process(tmp_path: Path) -> None:
    with Ring(tmp_path, site()) as ring:
        ring.crawl(ROOT)
        ring.run(ring.committer.commit())
        spent = ends(ring)["fetched"]
    with Ring(tmp_path, site()) as ring:
        assert [trap.name for trap in ring.traps.all] == [TRAP]
        assert not ring.trapping.judge(url_of(f"{ROOT}cal/1999/01/"), 0.0).allowed
        ring.crawl(f"{ROOT}good/", f"{ROOT}good/7")
        assert not any("/cal/" in url for url in ring.outcomes)
    assert spent < 400


def test_a_name_that_no_trap_has_releases_nothing(tmp_path: Path) -> None:
    with Ring(tmp_path, {ROOT: page()}) as ring:
        release = ring.trapping.release_trap(
            "example.org/no", ring.namer, ring.history, ring.pipeline.discovery.discover, lambda _: None
        )
        assert ring.run(release) == []


@pytest.mark.parametrize(
    ("original", "is_looked_at"), [("", True), ("http://mirror.test/cal/1/", True), (f"{ROOT}about?a=b", False)]
)
def test_only_a_copy_of_a_page_of_its_host_is_evidence_without_a_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, original: str, *, is_looked_at: bool
) -> None:
    with Ring(tmp_path) as ring:
        looks: list[bool] = []
        monkeypatch.setattr(ring.traps, "note_page", lambda _url, look, *_: looks.append(look is not None))
        url = url_of(f"{ROOT}cal/2/")
        row = PageRow(url.text, url.text, url.host, url.site, 0.0, "fetched", 200, "text/html", duplicate_of=original)
        ring.trapping.note_page(url, Content(b"<p>There are no events"), row)
        assert looks == [is_looked_at]


def test_a_page_counts_for_the_address_from_which_redirects_led_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages: dict[str, Answers] = {
        ROOT: page("/go/1", "/plain"),
        ROOT + "go/1": reply(b"", status=302, headers=[("Location", "/go/2")]),
        ROOT + "go/2": reply(b"", status=302, headers=[("Location", "/room/x")]),
        ROOT + "room/x": page("/go/3"),
        ROOT + "plain": page(),
    }
    with Ring(tmp_path, pages) as ring:
        counted: dict[str, str] = {}
        redirects: list[str] = []
        monkeypatch.setattr(
            ring.traps, "note_page", lambda url, *given: counted.update({url.text: given[-2].text}) or None
        )
        monkeypatch.setattr(ring.traps, "count_redirect", lambda url: redirects.append(url.text))
        ring.crawl(ROOT)
        assert counted == {ROOT: ROOT, ROOT + "plain": ROOT + "plain", ROOT + "room/x": ROOT + "go/1"}
        assert redirects == [ROOT + "go/1", ROOT + "go/2"]
