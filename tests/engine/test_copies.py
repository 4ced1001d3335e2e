"""Copies in the ring: what is called one, and which of its links are followed."""

from __future__ import annotations

import gzip
from itertools import permutations
from pathlib import Path

import pytest

from gossamer.assembly.parts import content_seen_of
from gossamer.config import configure
from gossamer.model.pages import Original, Page
from gossamer.stages.process.chain import Modules, Processed
from gossamer.stages.process.options import ProcessOptions
from gossamer.testing.fakes import Answers, page, reply
from tests.engine.ring import Ring, url_of
from tests.engine.test_documents import together
from tests.stages.process.pages import standard_modules

ROOT = "http://example.org/"
PROSE = " ".join(
    f"{a}{b}" for a in ("silk", "dew", "wind", "leaf", "moss", "bark") for b in ("thread", "bridge", "web", "fall")
)


def test_a_coded_copy_is_a_copy_but_no_revisit(tmp_path: Path) -> None:
    plain = page("/x", title="same")
    coded = reply(gzip.compress(plain.body, mtime=0), headers=[("Content-Encoding", "gzip")])
    with Ring(
        tmp_path, {ROOT: page("/1", "/2", "/3"), ROOT + "1": plain, ROOT + "2": coded, ROOT + "3": plain}
    ) as ring:
        ring.crawl(ROOT)
        rows = {visited.row.url: visited for visited in ring.archive.added}
        copies = {url for url, visited in rows.items() if visited.row.duplicate_of}
        assert len(copies & {ROOT + "1", ROOT + "2", ROOT + "3"}) == 2
        revisits = {url for url, visited in rows.items() if visited.revisit_of is not None}
        assert len(revisits & {ROOT + "1", ROOT + "3"}) == 1
        assert ROOT + "2" not in revisits, "its payload is another"


@pytest.mark.promise(
    "What is fetched", "Which links are followed does not depend on which of several copies is fetched first."
)
def test_what_copies_lead_to_does_not_depend_on_their_order(tmp_path: Path) -> None:
    """The same relative links lead elsewhere from elsewhere: all of them are followed, whichever copy comes first."""
    same = page("x", "/common", title="same")
    found = set()
    for number, order in enumerate(permutations(("/1/", "/2/", "/3"))):
        pages = {ROOT: page(*order), ROOT + "1/": same, ROOT + "2/": same, ROOT + "3": same}
        with Ring(tmp_path / str(number), pages) as ring:
            ring.crawl(ROOT)
            found.add(frozenset(ring.outcomes))
    assert found == {frozenset(ROOT + end for end in ("", "1/", "2/", "3", "1/x", "2/x", "x", "common"))}


def mirrors() -> dict[str, Answers]:
    same = page("x", "http://example.net/from-copy", title="same")
    coded = reply(gzip.compress(same.body, mtime=0), headers=[("Content-Encoding", "gzip")])
    one, other, third = "http://example.org/1/", "http://mirror.example.net/2/", "http://third.example.com/3/"
    return {
        ROOT: page(one, other, third, ROOT + "unlike"),
        one: same,
        other: same,
        third: coded,
        ROOT + "unlike": page(),
    }


def test_copies_are_not_processed_any_further_where_that_is_asked_for(tmp_path: Path) -> None:
    processed: list[str] = []
    modules = Modules(standard_modules(ProcessOptions()), ProcessOptions())

    def look(seen: Page) -> Processed:
        processed.append(seen.url)
        return modules.process(seen)

    with Ring(tmp_path, mirrors(), crawl={"process_copies": False}, look=look) as ring:
        ring.crawl(ROOT)
        rows = {row.url: row for row in ring.rows}
        copies = {url for url, row in rows.items() if row.duplicate_of and row.outcome == "fetched"}
        assert len(copies) == 2
        assert {rows[url].title for url in copies} == {""}
        assert not copies & set(processed)
        (original,) = {rows[url].duplicate_of for url in copies}
        assert [url for url in processed if url.endswith(("1/", "2/", "3/"))] == [original]
        followed = {url for url in rows if url.endswith("/x")}
        assert followed == {original + "x"}
        archived = [visited for visited in ring.archive.added if visited.row.url in copies]
        assert [(visited.links, visited.reply is not None) for visited in archived] == [([], True)] * 2


def test_a_copy_that_is_examined_beside_its_original_leaves_nothing_either(tmp_path: Path) -> None:
    one, other = "http://one.example/", "http://two.example/"
    pages = {ROOT: page(one, other), **{host: page("x", title="same", text="words") for host in (one, other)}}
    with Ring(tmp_path, pages, crawl={"process_copies": False}) as ring:
        ring.seed(ROOT)
        ring.run(together(ring))
        rows = {row.url: row for row in ring.rows}
        (copy,) = [row for row in rows.values() if row.duplicate_of]
        assert rows[copy.duplicate_of].title == "same"
        assert copy.title == ""
        assert set(rows) == {ROOT, one, other, copy.duplicate_of + "x"}
        (archived,) = [visited for visited in ring.archive.added if visited.row.url == copy.url]
        assert archived.links == []


def test_what_unprocessed_copies_hide_depends_on_their_order_and_by_default_nothing_does(tmp_path: Path) -> None:
    """As docs/explanation/duplicates.md says of each."""
    found: dict[bool, set[frozenset[str]]] = {True: set(), False: set()}
    hosts = ("http://one.example/", "http://two.example/")
    for process, outcomes in found.items():
        for number, order in enumerate(permutations(hosts)):
            pages = {ROOT: page(*order), **{host: page("x", title="same") for host in hosts}}
            with Ring(tmp_path / f"{process}{number}", pages, crawl={"process_copies": process}) as ring:
                ring.crawl(ROOT)
                outcomes.add(frozenset(ring.outcomes))
    assert found[True] == {frozenset([ROOT, *hosts, *(host + "x" for host in hosts)])}
    assert found[False] == {frozenset([ROOT, *hosts, host + "x"]) for host in hosts}


@pytest.mark.parametrize(
    ("sets", "found"),
    [
        ((), False),
        (("crawl.process_copies=false",), True),
        (("crawl.process_copies=false", "seen.content_scope=site"), False),
    ],
)
def test_copies_that_are_not_processed_are_looked_for_on_all_hosts(
    tmp_path: Path, sets: tuple[str, ...], found: bool
) -> None:
    config = configure(sets=sets)
    with Ring(tmp_path, {}) as ring:
        seen = content_seen_of(config, ring.epochs)
        seen.remember(b"digest", url_of("http://a.example/"), Original("http://a.example/", 1.0, ""))
        assert (seen.find(b"digest", url_of("http://b.example.org/")) is not None) == found


def test_links_that_lead_to_the_same_pages_are_not_offered_again(tmp_path: Path) -> None:
    same = page("/a", "/b", "/c", title="same")
    pages = {ROOT: page("/1", "/2"), ROOT + "1": same, ROOT + "2": same}
    with Ring(tmp_path, pages) as ring:
        offered: list[str] = []
        offer = ring.url_seen.offer

        def note(urls, depths, hops):  # type: ignore[no-untyped-def]
            offered.extend(url.text for url in urls)
            return offer(urls, depths, hops)

        ring.url_seen.offer = note  # type: ignore[method-assign]
        ring.crawl(ROOT)
        assert offered.count(ROOT + "a") == 1


def test_a_copy_that_is_nearer_passes_its_shorter_way_on(tmp_path: Path) -> None:
    same = page("/deep", title="same")
    pages = {ROOT: page("/far"), ROOT + "far": page("/farther"), ROOT + "farther": same, ROOT + "near": same}
    pages |= {ROOT + "deep": page("/deeper"), ROOT + "deeper": page("/deepest")}
    with Ring(tmp_path, pages, scope={"depth_max": 3}) as ring:
        ring.crawl(ROOT)
        assert ROOT + "deeper" not in ring.outcomes
        ring.crawl(ROOT + "near")
        assert {ROOT + "deep", ROOT + "deeper", ROOT + "deepest"} <= set(ring.outcomes)


def test_links_of_a_copy_on_another_host_are_always_followed(tmp_path: Path) -> None:
    same = page("x", title="same")
    pages = {ROOT: page("/1/", "http://www.example.org/2/"), ROOT + "1/": same, "http://www.example.org/2/": same}
    with Ring(tmp_path, pages, crawl={"follow_copies": False}) as ring:
        ring.crawl(ROOT)
        assert {ROOT + "1/x", "http://www.example.org/2/x"} <= set(ring.outcomes)


@pytest.mark.parametrize("near", ["host", ""])
def test_near_duplicates_are_archived_whole_and_marked(tmp_path: Path, near: str) -> None:
    prose = " ".join(PROSE.replace("silk", str(turn) + "silk" * (turn % 3)) for turn in range(12))
    pages = {ROOT: page("/1", "/2", "/3"), ROOT + "1": page(text=prose), ROOT + "2": page(text=prose + " 1234")}
    pages[ROOT + "3"] = page(text=" ".join(reversed(prose.split())))
    with Ring(tmp_path, pages, near=near) as ring:
        ring.crawl(ROOT)
        rows = {visited.row.url: visited for visited in ring.archive.added}
        pair = {rows[ROOT + "1"].row.near_duplicate_of, rows[ROOT + "2"].row.near_duplicate_of}
        assert pair in ([{"", ROOT + "1"}, {"", ROOT + "2"}] if near else [{""}])
        assert rows[ROOT + "3"].row.near_duplicate_of == ""
        assert (rows[ROOT + "1"].row.simhash is not None) is bool(near)
        assert all(visited.revisit_of is None for visited in rows.values())
