"""What people type finds what they mean: in many languages, in an old index, and with the emphasis of a page."""

from __future__ import annotations

from pathlib import Path

import pytest
import tantivy

from gossamer.model.pages import Findings, Page
from gossamer.model.verbs import SearchResults
from gossamer.results.search.build import rewrite
from gossamer.results.search.documents import IndexedPage
from gossamer.results.search.index import IndexWriter
from gossamer.results.search.query import best_of, search
from gossamer.results.search.question import SearchQuestion
from gossamer.stages.process.options import ProcessOptions
from gossamer.stages.process.text import TitleAndText
from tests.results.search.sentences import PAGES, QUERIES

AT = 1_767_225_600_000_000


def page(name: str, text: str, language: str = "", title: str = "", emphasis: str = "") -> IndexedPage:
    host = f"{language or 'any'}.example"
    return IndexedPage(name, f"https://{host}/{name}", host, host, title, text, language, "", AT, emphasis)


def write(folder: Path, *pages: IndexedPage) -> Path:
    writer = IndexWriter(folder, 15_000_000)
    for one in pages:
        writer.put(one)
    writer.commit("")
    writer.close()
    return folder


def ask(folder: Path, query: str, **options: str) -> SearchResults:
    return search([folder], SearchQuestion(query, **options))  # type: ignore[arg-type]


def names(folder: Path, query: str) -> list[str]:
    return [hit.url.rpartition("/")[2] for hit in ask(folder, query).hits]


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pages = [page(name, text, language) for name, (language, text) in PAGES.items()]
    return write(tmp_path_factory.mktemp("sentences") / "search", *pages)


@pytest.mark.parametrize(("query", "name"), QUERIES)
def test_what_readers_type_finds_their_page(index: Path, query: str, name: str) -> None:
    found = ask(index, query)
    assert name in names(index, query)
    assert found.problems == ()


@pytest.mark.parametrize("query", ["🇪🇩", "🚀", "sold -🎉", "1299.98", "129999"])
def test_other_signs_and_amounts_find_nothing(index: Path, query: str) -> None:
    found = ask(index, query)
    assert (found.hits, found.problems) == ((), ())


def test_characters_of_a_run_must_stand_in_their_order(index: Path) -> None:
    assert names(index, "東京都") == ["ja"]
    assert set(names(index, "京都")) == {"ja", "ja-2"}
    assert names(index, "都東京") == []


@pytest.mark.parametrize(
    ("query", "marked"),
    [("登录", ["登录"]), ("cafe", ["cafe\u0301"]), ("haus", ["Häusern"]), ("commit*", ["commits"]), ("データ", ["ﾃﾞｰﾀ"]),
     ("donaudampfschiff", ["Donau\u00addampf\u00adschiff"]), ("cafe OR malaga", ["cafe\u0301", "Ma\u0301laga"])],
)  # fmt: skip
def test_a_snippet_shows_the_match_as_the_page_writes_it(index: Path, query: str, marked: list[str]) -> None:
    [hit] = ask(index, query).hits
    assert [hit.snippet[start:end] for start, end in hit.highlights] == marked


def test_a_snippet_is_where_most_words_are(tmp_path: Path) -> None:
    text = f"red {'and so on ' * 50} a red fox {'more of it ' * 50}"
    [hit] = ask(write(tmp_path / "search", page("a", text)), "red fox").hits
    assert [hit.snippet[start:end] for start, end in hit.highlights] == ["red", "fox"]
    assert len(hit.snippet) <= 200
    assert hit.snippet.endswith((" more", " of", " it"))


def test_exact_words_rank_before_other_forms(tmp_path: Path) -> None:
    folded = [page(f"folded-{n}", "résumé résumé runs runs", "en", "Résumé runs") for n in range(3)]
    exact = page("exact", "resume run " + "among many other words " * 50, "en")
    folder = write(tmp_path / "search", *folded, exact)
    for query in ("resume", "run", "resume run"):
        assert names(folder, query)[0] == "exact", query
        assert len(names(folder, query)) == 4, query
    assert names(folder, "résumé")[-1] == "exact"
    assert names(folder, '"resume run"')[0] == "exact"
    assert names(folder, "run -resume") == [f"folded-{n}" for n in range(3)]


def emphasized(body: str) -> str:
    found = Findings()
    TitleAndText(ProcessOptions(text=True)).process(
        Page("http://a.example/", "text/html", "utf-8", (), body.encode()), found
    )
    return found.emphasis


@pytest.mark.parametrize("name", ["C++", "C#", "F#", ".NET"])
def test_a_name_with_marks_ranks_before_the_word_without(name: str, tmp_path: Path) -> None:
    plain = page("plain", f"{name.strip('+#.')} and {name.strip('+#.')} " * 20, "en")
    index = write(tmp_path / "search", plain, page("named", f"A book about {name}, for all who read it.", "en"))
    assert names(index, name) == ["named", "plain"]
    assert set(names(index, name.strip("+#."))) == {"named", "plain"}


def test_a_number_whose_mark_has_a_meaning_is_no_other_number(tmp_path: Path) -> None:
    index = write(tmp_path / "search", page("version", "Python 3.11 is out", "en"), page("number", "page 311", "en"))
    assert names(index, "3.11") == ["version"]
    assert names(index, "311") == ["number"]


def test_words_within_others_are_found_only_where_no_page_has_the_word(tmp_path: Path) -> None:
    pages = [page("whole", "Die Zeitung", "de"), page("within", "Die Tageszeitung und die Hafenrundfahrt", "de")]
    index = write(tmp_path / "search", *pages)
    assert names(index, "zeitung") == ["whole"]
    assert names(index, "rundfahrt") == ["within"]
    assert names(index, "fahr") == []
    english = write(tmp_path / "english", page("within", "A steamboat on the lake", "en"))
    assert names(english, "steam*") == ["within"]
    assert names(english, "amboat") == []


def test_filters_take_addresses_and_regions(index: Path) -> None:
    assert names(index, "site:https://de.example/ straße") == ["de"]
    assert names(index, "lang:de-AT straße") == ["de"]
    assert [hit.url for hit in ask(index, "straße", language="de-CH", host="http://de.example/x").hits] == [
        "https://de.example/de"
    ]


@pytest.mark.parametrize("element", ["h1", "h3", "b", "strong"])
def test_of_equal_pages_the_one_that_emphasizes_a_word_comes_first(tmp_path: Path, element: str) -> None:
    emphasis = emphasized(f"<p>A <{element} class=x>wood kiln</{element}> stands there.")
    text = "A wood kiln stands there."
    folder = write(
        tmp_path / "search", page("plain", text), page("strong", text, emphasis=emphasis), page("last", text)
    )
    assert names(folder, "kiln")[0] == "strong"
    assert set(names(folder, "stands")) == {"plain", "strong", "last"}


def test_emphasis_is_bounded_and_visible() -> None:
    assert (
        emphasized("<h2>One <b>two</b> three</h2> four <strong>five<br>six</strong> <b>seven")
        == "One two three five six seven"
    )
    assert emphasized("<h2>One<script>two</script><!-- three --> four</h2>") == "One four"
    assert emphasized("<b>open <h2>heading</h2> plain") == "open heading"
    assert len(emphasized("<b>" + "long " * 10_000)) == 10_000
    assert len(emphasized("<b>a</b>" * 100_000)) == 10_000


def test_what_finds_nothing_is_answered_with_a_similar_query_that_does(index: Path) -> None:
    assert ask(index, "ofice runing").suggestion == "office running"
    assert ask(index, "xylophone").suggestion == ""
    assert ask(index, "office").suggestion == ""
    assert ask(index, "gcc -O2").suggestion == 'gcc "-O2"'
    assert ask(index, "1299999").suggestion == ""


def test_answers_count_their_hosts_and_languages(index: Path, tmp_path: Path) -> None:
    found = ask(index, "cafe OR haus OR running")
    assert found.hosts == {"de.example": 1, "en.example": 1, "es.example": 1}
    assert found.languages == {"de": 1, "en": 1, "es": 1}
    other = ask(write(tmp_path / "search", page("x", "cafe", "en"), page("y", "cafe", "en")), "cafe")
    assert best_of([found, other], 10).languages == {"en": 3, "de": 1, "es": 1}


def test_fields_are_named_by_their_names_alone(index: Path) -> None:
    assert names(index, "site:es.example cafe") == ["es"]
    assert names(index, "cafe language:de") == []
    assert names(index, "text:cafe") == ["es"]
    assert names(index, "url:code") == ["code"]
    assert names(index, "--running") == names(index, "running") == ["en"]


def test_a_rewritten_index_keeps_all_that_its_pages_say(tmp_path: Path) -> None:
    source = write(
        tmp_path / "old",
        page("a", "令牌 kiln", "en", "Öfen"),
        page("b", "kiln", "en", emphasis="kiln"),
        page("c", "kiln"),
    )
    assert rewrite(source, tmp_path / "new", 15_000_000, lambda url: url.endswith("/c")) == 1
    assert names(tmp_path / "new", "kiln") == ["b", "a"]
    assert names(tmp_path / "new", "令牌") == names(tmp_path / "new", "ofen") == ["a"]


def old_index(folder: Path) -> Path:
    """An index of the first layout, as Gossamer 1 made it."""
    builder = tantivy.SchemaBuilder()
    for name in ("key", "host", "site", "language"):
        builder.add_text_field(name, stored=True, tokenizer_name="raw", index_option="basic")
    for name in ("title", "text", "url"):
        builder.add_text_field(name, stored=True)
    builder.add_text_field("anchors")
    builder.add_text_field("position", stored=True, tokenizer_name="raw", index_option="basic")
    builder.add_date_field("at", stored=True, indexed=True, fast=True)
    folder.mkdir(parents=True)
    tantivy.Index(builder.build(), str(folder))
    return folder


def test_an_index_of_an_earlier_version_is_read_continued_and_rewritten(tmp_path: Path) -> None:
    folder = write(old_index(tmp_path / "search"), page("a", "Call std::vector in the café", "en", "Title"))
    write(folder, page("b", "A second page: std vectors. 令牌", "en"))
    assert names(folder, "std::vector") == ["a"]
    assert names(folder, "title:title") == names(folder, "café -second") == ["a"]
    assert set(names(folder, "vec*")) == set(names(folder, "*")) == {"a", "b"}
    assert names(folder, '"second page"') == names(folder, "令牌") == ["b"]
    [hit] = ask(folder, "std::vector").hits
    assert [hit.snippet[start:end] for start, end in hit.highlights] == ["std", "vector"]
    assert ask(folder, "secnd").suggestion == "second"
    assert "an earlier version" in ask(folder, "std").notice
    assert rewrite(folder, tmp_path / "new", 15_000_000, lambda url: url.endswith("/b")) == 1
    assert names(tmp_path / "new", "cafe") == ["a"]
    assert ask(tmp_path / "new", "cafe").notice == ""
