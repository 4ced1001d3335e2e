"""What a continuous crawl sees of a page at a visit."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from gossamer.features.revisit.options import RevisitOptions
from gossamer.features.revisit.policies import POLICIES
from gossamer.features.revisit.revisiting import Revisiting
from gossamer.features.revisit.schedule import Schedule
from gossamer.model.links import Visit
from gossamer.model.pages import Findings, Rendered, Visited
from gossamer.model.visits import Content
from gossamer.stages.seen.shingles import sketch, text_of
from gossamer.world.dice import Dice
from tests.engine.ring import Ring
from tests.stages.archive.web import START, visited

SHELL = b"<div id=root></div><script src=/app.js></script>"


@pytest.fixture
def revisiting(tmp_path: Path) -> Iterator[Revisiting]:
    with Ring(tmp_path) as ring:
        policy = POLICIES[RevisitOptions().policy]()
        schedule = Schedule(ring.epochs, ring.frontier, policy, RevisitOptions(), Dice(1))
        yield Revisiting(schedule, ring.frontier, "words", partial(sketch, lowest=False), text_of, conditional=True)


def seen(revisiting: Revisiting, at: float, content: str, *, rendered: bool, price: int = 0) -> Visited:
    """Visit a page whose bytes are always the same; return the visit with its change."""
    found = visited(body=SHELL, headers=(("ETag", '"1"'),), at=START + at)
    found.digest, found.content = b"the same", Content(content.encode())
    found.rendered = Rendered(content.encode(), "urn:x") if rendered else None
    found.findings = Findings(rows={"items/book": [{"price": price}]}, fields=["items/book.price"]) if price else None
    sight = revisiting.compare(Visit(found.url, 1, 0, "anchor", ""), found)
    revisiting.revisits.note_visit(sight)
    return found


def test_scripts_change_a_page_whose_bytes_stay_the_same(revisiting: Revisiting) -> None:
    words = ("<p>in stock today", "<p>in stock today", "<p>sold out today")
    changes = [seen(revisiting, n, text, rendered=True).row.change for n, text in enumerate(words)]
    assert changes == ["appeared", "same", "changed"]


def test_scripts_change_an_item_of_a_page_whose_bytes_and_words_stay_the_same(revisiting: Revisiting) -> None:
    visits = [seen(revisiting, n, f"<p>price {n}", rendered=True, price=n + 1) for n in range(2)]
    assert [one.row.change for one in visits] == ["appeared", "changed"]


def test_equal_bytes_of_a_page_without_scripts_are_the_same_page(revisiting: Revisiting) -> None:
    changes = [seen(revisiting, n, text, rendered=False).row.change for n, text in enumerate(("<p>one", "<p>two"))]
    assert changes == ["appeared", "same"]


def test_a_redirect_that_leads_elsewhere_is_changed_whatever_its_body(revisiting: Revisiting) -> None:
    changes = []
    for at, target in enumerate(("http://a.test/one", "http://a.test/one", "http://a.test/two")):
        found = visited(body=b"Moved", status=302, at=START + at)
        found.row.outcome = "redirected"
        found.row.redirect_to = target
        found.digest = b"the same"
        sight = revisiting.compare(Visit(found.url, 1, 0, "anchor", ""), found)
        revisiting.revisits.note_visit(sight)
        changes.append(found.row.change)
    assert changes == ["appeared", "same", "changed"]


@pytest.mark.parametrize("rendered", [False, True])
def test_a_page_that_scripts_make_is_not_requested_on_condition(revisiting: Revisiting, *, rendered: bool) -> None:
    found = visited(body=SHELL, headers=(("ETag", '"1"'),))
    found.rendered = Rendered(SHELL, "urn:x") if rendered else None
    visit = Visit(found.url, 1, 0, "anchor", "")
    sight = revisiting.compare(visit, found)
    assert sight.etag == ("" if rendered else '"1"')
