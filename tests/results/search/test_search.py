"""The index: what it finds, how it follows the crawl, and what a crash at any step leaves of it."""

from __future__ import annotations

import random
from pathlib import Path
from typing import cast

import pytest

from gossamer.model.errors import ConfigError
from gossamer.model.links import Found as FoundLink
from gossamer.model.pages import Findings, Visited
from gossamer.model.verbs import SearchResults
from gossamer.model.visits import Content
from gossamer.results.export.export import ExportedCrawl
from gossamer.results.search import build as building
from gossamer.results.search.build import build
from gossamer.results.search.documents import SCHEMA, IndexedPage, document_of, language_of
from gossamer.results.search.index import IndexWriter
from gossamer.results.search.log import IndexFollower, SearchLog
from gossamer.results.search.query import search
from gossamer.results.search.question import QueryError, SearchQuestion
from gossamer.results.search.words import _parts_of, _Remembered, joined_terms, terms_of
from gossamer.stages.archive.archive import Archives, Followers
from gossamer.stages.archive.follower import Follower
from gossamer.stages.archive.options import ArchiveOptions, SearchOptions
from gossamer.stages.archive.tables import TableWriters
from gossamer.stages.archive.warc import WarcArchive, WarcInfo
from gossamer.testing import FakeClock
from tests.results.export.conftest import MEANS, NOW
from tests.stages.archive.web import START, Shard, visited

HOSTILE = "\x1b[31mred\x07 \u202egnihsif"


def page(url: str, title: str = "Title", text: str = "Some text.", lang: str = "en", at: float = START) -> Visited:
    body = f'<html lang="{lang}"><title>{title}</title><p>{text}'.encode()
    visit = visited(url, body, at=at)
    visit.row.title = title
    visit.content, visit.findings = Content(body), Findings(title=title, text=text)
    return visit


class Crawled:
    """Archives with search, over journals that survive."""

    def __init__(self, shard: Shard, clock: FakeClock | None = None, run: int = 1, **options: object) -> None:
        self.shard = shard
        self.clock = clock or FakeClock()
        given = SearchOptions(enabled=True, **options)  # type: ignore[arg-type]
        self.log = SearchLog(given, shard.journals, self.clock, incarnation=run)
        self.indexer = IndexFollower(given, shard.journals)
        self.followers = Followers([Follower(shard.journals), self.indexer])
        archive_options = ArchiveOptions()
        self.archives = Archives(
            [
                WarcArchive(archive_options, shard.journals, WarcInfo("gossamer/1"), incarnation=run),
                TableWriters(archive_options, shard.journals, incarnation=run),
                self.log,
            ]
        )

    def add(self, *visits: Visited) -> None:
        for visit in visits:
            self.archives.add(visit)
        self.archives.cut()
        self.shard.commit()

    def follow(self) -> None:
        while (task := self.followers.next()) is not None:
            task.settle(task.make())
            self.shard.commit()

    def finish(self) -> None:
        self.archives.close()
        self.shard.commit()
        self.follow()
        self.followers.close()


def ask(directory: Path, query: str, **options: object) -> SearchResults:
    return search([directory / "search"], SearchQuestion(query, **options))  # type: ignore[arg-type]


def urls(directory: Path, query: str, **options: object) -> list[str]:
    return [hit.url for hit in ask(directory, query, **options).hits]


PAGES = [
    page("http://a.example/one", "Apples and pears", "A quick brown fox jumps over the lazy dog."),
    page("http://a.example/two", "Foxes", "The brown fox is quick. " * 40, at=START + 60),
    page("http://b.a.example/drei", "Füchse", "Der schnelle braune Fuchs.", "de"),
    page("http://c.example/hostile", HOSTILE, f"words {HOSTILE} more words", "fr"),
]


@pytest.fixture
def crawled(tmp_path: Path) -> Path:
    crawl = Crawled(Shard(tmp_path))
    failed = visited("http://a.example/failed")
    failed.reply = None
    failed.row.outcome = "timeout"
    crawl.add(*PAGES, failed)
    crawl.finish()
    return tmp_path


def test_words_phrases_and_fields_are_found(crawled: Path) -> None:
    assert set(urls(crawled, "quick fox")) == {"http://a.example/one", "http://a.example/two"}
    assert urls(crawled, '"quick brown fox"') == ["http://a.example/one"]
    assert urls(crawled, '"quick brown fo"*') == ["http://a.example/one"]
    assert urls(crawled, "fox -lazy") == ["http://a.example/two"]
    assert urls(crawled, "title:foxes") == ["http://a.example/two"]
    assert urls(crawled, "füchse") == ["http://b.a.example/drei"]
    assert urls(crawled, "drei") == ["http://b.a.example/drei"]  # A word of its URL.
    assert urls(crawled, "absent") == []


def test_answers_can_be_kept_to_a_host_a_site_or_a_language(crawled: Path) -> None:
    assert urls(crawled, "fox", host="a.example") == urls(crawled, "fox", site="A.EXAMPLE")
    assert urls(crawled, "fox OR fuchs", language="de") == ["http://b.a.example/drei"]
    assert urls(crawled, "fox", host="example") == []


def test_a_hit_knows_its_page_and_shows_where_it_matches(crawled: Path) -> None:
    [hit] = ask(crawled, "schnelle braune").hits
    assert (hit.title, hit.host, hit.language, hit.fetched_at.timestamp()) == ("Füchse", "b.a.example", "de", START)
    assert [hit.snippet[start:end] for start, end in hit.highlights] == ["schnelle", "braune"]
    assert ask(crawled, "fox", limit=1).total == 2
    [by_title] = ask(crawled, "title:füchse").hits
    assert by_title.snippet.startswith("Der schnelle")
    assert by_title.highlights == ()


def test_what_was_not_understood_is_reported(crawled: Path) -> None:
    found = ask(crawled, 'fox at:[2000 TO *] f*x fox~2 text:>a title:🦊 "lazy dog OR')
    for part in ("[2000 TO *]", "f*x", "fox~2", "text:>a", "title:🦊", '"lazy dog OR'):
        assert any(part in problem for problem in found.problems), part
    assert any("OR" in problem for problem in ask(crawled, "fox OR").problems)
    assert '"-word"' in ask(crawled, "-Wall").problems[0]
    for query in ("fox AND", "((", "title:", "*", "\\", "a:b:c", "🦊", "+-", "x" * 2000, "fox OR OR", "[a TO", "\x00"):
        ask(crawled, query)


HOSTILE_QUERIES = {
    "brackets": "(" * 5_000, "many brackets": "()" * 40, "nested": "(" * 20 + "fox" + ")" * 20, "square": "[" * 2_000,
    "OR": "OR " * 100_000, "words": " ".join(f"w{n}" for n in range(1_000)), "NOT": "NOT " * 500 + "fox",
    "asterisks": "a* " * 1_000, "ranges": "text:[a TO z] " * 5, "comparisons": "text:>a " * 5, "long": "x" * 1_000_000,
    "slop": '"brown fox"~4294967295', "long slop": '"brown fox"~99999999999999999999', "weight": "fox^1001",
    "boosts": "fox^99999999999999", "surrogate": "fox \ud800", "empty": "", "blank": " \t\u2003",
    "fields": "text:" * 500,
}  # fmt: skip


@pytest.mark.parametrize("query", HOSTILE_QUERIES.values(), ids=HOSTILE_QUERIES)
def test_a_query_beyond_a_bound_is_refused_in_one_line_before_it_is_parsed(crawled: Path, query: str) -> None:
    with pytest.raises(QueryError, match=r"^the query ") as refused:
        ask(crawled, query)
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 200


STRANGE_QUERIES = (
    '"unbalanced', "fox)", "fox (brown", "\x00", "fox\x00brown", "[* TO *]", "title:[* TO *]", "text:{a TO b}",
    "fox~2", "fox^2.5", "fox^nan", "((fox^2)^3)^4", "nofield:fox", "at:[2000-01-01T00:00:00Z TO *]", "at:fox",
    "\U0001f98a" * 500, "\u202exof", "text:/f.*x/", "text: IN [fox dog]", "'fox' \"brown\"", "-" * 2_000, ":" * 2_000,
    "\\" * 2_000, "^" * 2_000, "~" * 2_000, "key:fox position:fox", "日本語 テキスト", "a.b.c.d@e",
    "fox AND NOT (dog OR -lazy)", "\u0301", '"\u0301 fox"', "fox \u00ad\u200b", "host:\u0301", "title:\u0e48*",
)  # fmt: skip


@pytest.mark.parametrize("query", STRANGE_QUERIES)
def test_a_strange_query_is_answered(crawled: Path, query: str) -> None:
    found = ask(crawled, query)
    assert found.total == 0 or all(hit.url for hit in found.hits)
    assert len(found.problems) <= 10


def test_a_query_that_cannot_be_run_is_a_mistake_of_its_writer(crawled: Path) -> None:
    with pytest.raises(QueryError, match="the query cannot be run"):
        ask(crawled, "text:*")


def test_what_the_index_keeps_for_itself_is_no_page(crawled: Path) -> None:
    assert ask(crawled, "*").total == len(urls(crawled, "*")) == len(PAGES)
    assert set(urls(crawled, "-fox")) <= {page.row.url for page in PAGES}


def test_a_snippet_is_one_line(tmp_path: Path) -> None:
    crawl = Crawled(Shard(tmp_path))
    crawl.add(page("http://a.example/", text="one\n\n  fox\ttwo\u2028three"))
    crawl.finish()
    for query in ("fox", "title:title"):
        [hit] = ask(tmp_path, query).hits
        assert hit.snippet == "one    fox two three"
    [hit] = ask(tmp_path, "fox").hits
    assert [hit.snippet[start:end] for start, end in hit.highlights] == ["fox"]


@pytest.mark.parametrize("limit", [0, -1, 1001])
def test_a_limit_that_is_none_is_refused(crawled: Path, limit: int) -> None:
    with pytest.raises(ConfigError, match="1 to 1000"):
        ask(crawled, "fox", limit=limit)


@pytest.mark.promise(
    "Files and exports", "The full-text index holds the last version of every fetched page once, also after kills."
)
def test_a_page_fetched_again_takes_the_place_of_what_was_there(tmp_path: Path) -> None:
    crawl = Crawled(Shard(tmp_path))
    crawl.add(page("http://a.example/", text="the first version"))
    crawl.add(page("http://a.example/", text="the second version", at=START + 9))
    crawl.finish()
    assert urls(tmp_path, "first") == []
    assert urls(tmp_path, "version") == ["http://a.example/"]


def test_pages_are_found_after_a_bounded_time_or_number(tmp_path: Path) -> None:
    clock = FakeClock()
    crawl = Crawled(Shard(tmp_path), clock, commit_s=10.0, commit_pages=3)
    crawl.add(page("http://a.example/1"))
    crawl.follow()
    assert not (tmp_path / "search").exists()
    clock.advance(10.0)
    crawl.add()
    crawl.follow()
    assert len(urls(tmp_path, "text")) == 1
    crawl.add(*(page(f"http://a.example/{number}") for number in range(2, 6)))
    crawl.follow()
    assert len(urls(tmp_path, "text")) == 5  # While the writer is open: readers need no lock.
    crawl.indexer.close()


def test_memory_is_bounded_within_an_epoch(tmp_path: Path) -> None:
    crawl = Crawled(Shard(tmp_path), frame_bytes_max=1_000)
    for number in range(50):
        crawl.archives.add(page(f"http://a.example/{number}", text="word " * 100))
        assert crawl.log._held_bytes < 1_000
    crawl.finish()
    assert ask(tmp_path, "word").total == 50


@pytest.mark.promise(
    "Files and exports", "The full-text index holds the last version of every fetched page once, also after kills."
)
@pytest.mark.parametrize("moment", ["logged", "put", "indexed", "settled", "committed"])
def test_a_crash_at_any_step_loses_and_doubles_nothing(tmp_path: Path, moment: str) -> None:
    crawl = Crawled(Shard(tmp_path))
    crawl.add(*PAGES)
    crawl.add(page(PAGES[0].row.url, "Changed", "A newer text.", at=START + 99))
    crawl.archives.close()
    crawl.shard.commit()
    task = crawl.indexer.next()
    assert task is not None
    if moment == "put":  # Half of the log is in the writer, which dies with the process.
        crawl.indexer.writer().put(cast("IndexedPage", document_of(PAGES[2])))
    elif moment != "logged":
        task.make()
        if moment != "indexed":
            task.settle(None)
        if moment == "committed":  # The commit is done, its consequences for files are not.
            manifest = crawl.shard.journals.cut()
            crawl.shard.journals.sync()
            crawl.shard.manifest = manifest
    shard = crawl.shard
    del crawl, task
    again = Crawled(shard.crash())
    again.finish()
    assert sorted(all_of(tmp_path)) == sorted({visit.row.url for visit in PAGES})
    assert urls(tmp_path, "newer") == [PAGES[0].row.url]
    assert urls(tmp_path, "jumps") == []
    assert not list((tmp_path / "state/search").glob("*"))


def all_of(directory: Path) -> list[str]:
    """Every document's URL, as often as it is there."""
    return urls(directory, "url:http OR url:https", limit=1000)


def test_what_no_unicode_can_say_is_indexed_all_the_same(tmp_path: Path) -> None:
    crawl = Crawled(Shard(tmp_path))
    crawl.add(odd())
    crawl.finish()
    assert urls(tmp_path, "after") == ["http://a.example/"]


def odd() -> Visited:
    visit = page("http://a.example/")
    assert visit.findings is not None
    visit.findings.text = "before \ud800 after"
    return visit


def test_an_index_built_of_the_archive_is_the_one_that_the_crawl_kept(crawled: Path) -> None:
    kept = {url: [hit for hit in ask(crawled, "url:http", limit=100).hits if hit.url == url] for url in all_of(crawled)}
    (crawled / "crawl.toml").touch()
    built = build(
        ExportedCrawl(crawled, running=False, now=NOW), MEANS, 15_000_000, 200_000_000, lambda done, rows: None
    )
    assert built.pages == len(PAGES)
    assert sorted(all_of(crawled)) == sorted(kept)
    for url, [hit] in kept.items():
        [same] = [one for one in ask(crawled, "url:http", limit=100).hits if one.url == url]
        assert (same.title, same.language, same.fetched_at) == (hit.title, hit.language, hit.fetched_at)
    assert {path.name for path in crawled.iterdir() if "search" in path.name} == {"search"}


def test_a_built_index_knows_what_links_say(tmp_path: Path) -> None:
    crawl = Crawled(Shard(tmp_path))
    linking = page("http://a.example/from")
    linking.links = [
        FoundLink("http://a.example/to", "anchor", f"  splendid {word} ") for word in ("marmalade", "jam", "jam")
    ]
    linking.link_keys = ["http://a.example/to"] * 3
    crawl.add(linking, page("http://a.example/to"))
    crawl.finish()
    assert urls(tmp_path, "marmalade") == []
    (tmp_path / "crawl.toml").touch()
    build(ExportedCrawl(tmp_path, running=False, now=NOW), MEANS, 15_000_000, 200_000_000, lambda done, rows: None)
    assert urls(tmp_path, "marmalade") == ["http://a.example/to"]


def test_a_build_that_was_killed_goes_on(crawled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "PAGES_A_COMMIT", 2)
    (crawled / "crawl.toml").touch()
    crawl = ExportedCrawl(crawled, running=False, now=NOW)

    def die(done: int, rows: int) -> None:
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build(crawl, MEANS, 15_000_000, 200_000_000, die)
    assert len(all_of(crawled)) == len(PAGES)  # The old one stands until the new one is whole.
    seen = []
    assert build(crawl, MEANS, 15_000_000, 200_000_000, lambda done, rows: seen.append(done)).resumed
    assert seen == [3, 4]
    assert sorted(all_of(crawled)) == sorted(visit.row.url for visit in PAGES)


def test_an_index_that_was_built_says_that_the_crawl_has_gone_on(crawled: Path) -> None:
    (crawled / "crawl.toml").touch()
    assert ask(crawled, "fox").notice == "", "it follows its crawl"

    def build_again() -> str:
        crawl = ExportedCrawl(crawled, running=False, now=NOW)
        build(crawl, MEANS, 15_000_000, 200_000_000, lambda done, rows: None)
        return ask(crawled, "fox").notice

    assert build_again() == ""
    shard = Shard(crawled)
    tables = TableWriters(ArchiveOptions(), shard.journals, incarnation=2)
    tables.cut()
    assert ask(crawled, "fox").notice == "", "it was resumed and fetched nothing"
    tables.add(page("http://a.example/three"))
    tables.cut()
    shard.commit()
    for _ in ("in the log", "in the table"):
        behind = ask(crawled, "fox")
        assert len(behind.hits) == 2
        assert behind.notice.endswith(
            f"since this index was built; `gossamer search {crawled} --build` brings it up to date"
        )
        tables.close()
        shard.commit()
        Follower(shard.journals).finish()
        shard.commit()
    assert build_again() == ""


def test_an_index_that_a_later_run_does_not_keep_says_that_the_crawl_has_gone_on(crawled: Path) -> None:
    (crawled / "crawl.toml").write_text("[search]\nenabled = false\n")
    assert ask(crawled, "fox").notice == "", "no page came since"
    shard = Shard(crawled)
    tables = TableWriters(ArchiveOptions(), shard.journals, incarnation=2)
    tables.add(page("http://a.example/three"))
    tables.cut()
    shard.commit()
    assert "has fetched more since this index was built" in ask(crawled, "fox").notice
    (crawled / "crawl.toml").write_text("[search]\nenabled = true\n")
    assert ask(crawled, "fox").notice == "", "it is being indexed"


def test_an_index_that_is_kept_again_says_that_it_lacks_the_run_between(crawled: Path) -> None:
    config = crawled / "crawl.toml"
    config.write_text("[search]\nenabled = false\n")
    shard = Shard(crawled)
    tables = TableWriters(ArchiveOptions(), shard.journals, incarnation=2)
    tables.add(page("http://a.example/three"))
    tables.cut()
    shard.commit()
    for run in (3, 4):
        again = Crawled(shard, run=run)
        config.write_text("[search]\nenabled = true\n")
        again.add(page("http://a.example/four", text="A fox."))
        again.finish()
        answer = ask(crawled, "fox")
        assert "http://a.example/four" in [hit.url for hit in answer.hits]
        assert "has fetched more since this index was built" in answer.notice
    build(ExportedCrawl(crawled, running=False, now=NOW), MEANS, 15_000_000, 200_000_000, lambda done, rows: None)
    assert ask(crawled, "fox").notice == ""
    again = Crawled(shard, run=5)
    again.add(page("http://a.example/five", text="A fox."))
    again.finish()
    assert ask(crawled, "fox").notice == ""


def test_two_writers_and_strange_files_are_reported(crawled: Path, tmp_path: Path) -> None:
    writer = IndexWriter(crawled / "search", 15_000_000)
    with pytest.raises(ConfigError, match="written by another process"):
        IndexWriter(crawled / "search", 15_000_000)
    writer.close()
    (tmp_path / "other").mkdir()
    (tmp_path / "other/meta.json").write_text("{}")
    with pytest.raises(ConfigError, match="--build` rebuilds it"):
        search([tmp_path / "other"], SearchQuestion("x"))


@pytest.mark.parametrize(
    ("body", "headers", "language"),
    [
        (b'<!doctype html><html class="x" lang="en-GB">', (), "en"),
        (b"<HTML LANG=de>", (), "de"),
        (b"<html>", (("Content-Language", "fr, en"),), "fr"),
        (b"<html>", (), ""),
        (b"<html " + b"a" * 5000 + b' lang="en">', (), ""),
    ],
)
def test_the_language_is_what_the_page_claims(body: bytes, headers: tuple[tuple[str, str], ...], language: str) -> None:
    assert language_of(body, headers) == language


def test_documents_keep_their_order_of_fields() -> None:
    assert list(IndexedPage.__struct_fields__) == SCHEMA.names


PIECES = (
    "a", "Get", "getUser", "HTTPServer", "ID", "x1", "1.000", "net", ".net", "NET", "c", "C", "+", "++", "#", "-", ".",
    "'", "\u2019", "_", "&", ",", ", ", ". ", " ", "\n", "(", "=", ":", '"', "\u2010", "\u200c", "é", "İ", "中", "ª",
)  # fmt: skip


def test_words_that_are_passed_over_have_no_joined_terms() -> None:
    """`joined_terms` puts spaces for marks first, and knows most words; here every word is read as it stands."""
    dice = random.Random(1)
    for _ in range(3_000):
        text = "".join(dice.choices(PIECES, k=dice.randrange(1, 12)))
        assert joined_terms(text) == sorted({term for word in text.split() for term in _parts_of(word)}), text


def test_forms_of_words_are_found_once_and_the_remembered_ones_are_bounded() -> None:
    found: list[str] = []

    def find(text: str) -> tuple[str, ...]:
        found.append(text)
        return (text.upper(),)

    remembered = _Remembered(find, 2)
    assert [remembered[text] for text in "ababcab"] == [(text.upper(),) for text in "ababcab"]
    assert found == [*"abcab"]  # The third text takes the place of both.
    assert len(remembered) == 1


def test_every_character_that_people_do_not_see_is_left_out_of_words() -> None:
    assert terms_of("hän\u3164gul") == terms_of("hän\uffa0gul") == terms_of("hän\U0001bca0gul") == terms_of("hängul")
