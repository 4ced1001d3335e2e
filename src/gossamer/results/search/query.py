"""Query: searches an index, also while it is written."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import tantivy
from msgspec.structs import replace

from gossamer.model.errors import ConfigError
from gossamer.model.verbs import SearchHit, SearchResults
from gossamer.model.words import shell_word
from gossamer.results.search.folder import crawl_of, is_behind, require_sound
from gossamer.results.search.index import LAYOUT, POSITION, layout_of, position_in, reading, text_in, time_in
from gossamer.results.search.match import FIELDS_1, FIELDS_2, QueryMatcher, filter_value
from gossamer.results.search.parse import QueryGroup, QueryParser
from gossamer.results.search.question import QueryError, SearchQuestion
from gossamer.results.search.snippets import SCANNED_CHARACTERS_MAX, Snippets, atoms_of
from gossamer.results.search.words import is_dense, terms_of

PROBLEMS_MAX = 10
PROBLEM_CHARACTERS_MAX = 300
LANGUAGES_MAX = 30
"""Most frequent languages of an index, by whose rules the words of a query are stemmed."""
FACETS_MAX = 10
NEAR_PAGES = 20
"""Pages that are read for a word similar to one that no page has."""
LONG_CHARACTERS = 6
"""A word of this length may differ in two letters, a shorter one in one."""
_OPTION = re.compile(r"(?<!\S)-[^\s\"()]++(?!\S)")
"""A word that a query leaves out, or an option of a command."""
_OPENINGS_MAX = 3


def search(folders: Sequence[Path], question: SearchQuestion) -> SearchResults:
    """Return the best pages of a crawl's indexes: words (all of them), `"phrases"`, `-without`, `title:word`, `OR`.
    A few milliseconds each.

    Raises:
        QueryError: the query passes a bound, or cannot be run.
        ConfigError: an index is missing, or cannot be read.
        DamagedError: a file of an index is missing, or is not what was written.
    """
    question.check()
    for folder in folders:
        require_sound(folder)
    answers = [_search_one(folder, question) for folder in folders]
    return answers[0] if len(answers) == 1 else best_of(answers, question.limit)


def _search_one(folder: Path, question: SearchQuestion) -> SearchResults:
    for opening in range(_OPENINGS_MAX):
        try:
            with reading(folder) as index:
                layout = layout_of(folder)
                answer = _answer(index, layout, question)
                return replace(answer, notice=_notice(crawl_of(folder), layout, position_in(index)))
        except (ConfigError, ValueError, OSError) as error:  # A writer may have merged away what was about to be read.
            if opening + 1 < _OPENINGS_MAX:
                continue
            if isinstance(error, ValueError):
                raise QueryError(f"the query cannot be run: {' '.join(str(error).split())}; simplify it") from error
            raise
    raise AssertionError("the last opening returns or raises")


def best_of(answers: Sequence[SearchResults], limit: int) -> SearchResults:
    """Merge the answers of indexes, whose word frequencies differ little. A page counts once, as last fetched."""
    latest: dict[str, SearchHit] = {}
    for hit in (hit for answer in answers for hit in answer.hits):
        if hit.url not in latest or latest[hit.url].fetched_at < hit.fetched_at:
            latest[hit.url] = hit
    hits = sorted(latest.values(), key=lambda hit: (-hit.score, hit.url))[:limit]
    total = sum(answer.total for answer in answers)
    return replace(
        answers[0],
        total=total,
        hits=tuple(hits),
        notice=next((answer.notice for answer in answers if answer.notice), ""),
        suggestion="" if total else next((answer.suggestion for answer in answers if answer.suggestion), ""),
        hosts=_most_frequent(answer.hosts for answer in answers),
        languages=_most_frequent(answer.languages for answer in answers),
    )


def _most_frequent(facets: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total = Counter[str]()
    for one in facets:
        total.update(one)
    return dict(total.most_common(FACETS_MAX))


def _notice(directory: Path, layout: int, position: str) -> str:
    remedy = f"`gossamer search {shell_word(directory)} --build` brings it up to date"
    if is_behind(directory, position):
        return f"the crawl has fetched more since this index was built; {remedy}"
    return f"an earlier version built this index, and finds less in it; {remedy}" if layout < LAYOUT else ""


def _answer(index: tantivy.Index, layout: int, question: SearchQuestion) -> SearchResults:
    searcher = index.searcher()
    parser = QueryParser(question.query)
    whole = parser.parse()
    has_facets = layout > 1
    languages = _counts(searcher, tantivy.Query.all_query(), "language", LANGUAGES_MAX) if has_facets else {}
    matcher = QueryMatcher(index.schema, layout, [question.language] if question.language else list(languages))
    query = _within(index.schema, matcher.query(whole), question)
    result: Any = searcher.search(query, question.limit)  # Its stub knows nothing of the count.
    if not result.count and matcher.is_compounding:
        query = _within(index.schema, matcher.query(whole, is_within=True), question)
        result = searcher.search(query, question.limit)
    snippets = Snippets(whole, (form for atom in atoms_of(whole) for form in matcher.forms(atom)))
    return SearchResults(
        query=question.query,
        total=result.count,
        hits=tuple(_hit(searcher.doc(address), score, snippets) for score, address in result.hits),
        problems=tuple(" ".join(one.split())[:PROBLEM_CHARACTERS_MAX] for one in parser.problems[:PROBLEMS_MAX]),
        notice="",
        suggestion="" if result.count else _suggestion(index, layout, question, whole),
        hosts=_counts(searcher, query, "host", FACETS_MAX) if has_facets else {},
        languages=_counts(searcher, query, "language", FACETS_MAX) if has_facets else {},
    )


def _within(schema: tantivy.Schema, query: tantivy.Query, question: SearchQuestion) -> tantivy.Query:
    """Return a query for pages alone, and only those that the question wants."""
    position = tantivy.Query.term_query(schema, "key", POSITION)  # No page, though it matches `*` and `-word`.
    parts = [(tantivy.Occur.Must, query), (tantivy.Occur.MustNot, position)]
    for field in ("host", "site", "language"):
        if value := getattr(question, field):
            term = tantivy.Query.term_query(schema, field, filter_value(field, value))
            parts.append((tantivy.Occur.Must, tantivy.Query.const_score_query(term, 0.0)))
    return tantivy.Query.boolean_query(parts)


def _hit(document: tantivy.Document, score: float, snippets: Snippets) -> SearchHit:
    language = text_in(document, "language")
    snippet, highlights = snippets.of(text_in(document, "text"), language)
    return SearchHit(
        url=text_in(document, "url"),
        title=text_in(document, "title"),
        host=text_in(document, "host"),
        language=language,
        fetched_at=time_in(document),
        score=float(score),
        snippet=snippet,
        highlights=highlights,
    )


def _counts(searcher: tantivy.Searcher, query: tantivy.Query, field: str, most: int) -> dict[str, int]:
    """Return the most frequent values of a field among the pages that match, with the number of pages."""
    found = searcher.aggregate(query, {"found": {"terms": {"field": field, "size": most}}})
    return {one["key"]: one["doc_count"] for one in found["found"]["buckets"]}


def _suggestion(index: tantivy.Index, layout: int, question: SearchQuestion, whole: QueryGroup) -> str:
    """Return the query with each unknown word replaced by the most similar one of the index, and words that it leaves
    out in quotes, if that finds pages.
    """
    searcher = index.searcher()
    suggested = question.query
    field = FIELDS_2["text"] if layout > 1 else FIELDS_1["text"]
    for atom in atoms_of(whole):
        if len(atom.terms) != 1 or searcher.doc_freq(field, atom.terms[0]):
            continue
        [term] = atom.terms
        if is_dense(term) or term.isdecimal():
            continue
        similar = tantivy.Query.fuzzy_term_query(index.schema, field, term, 1 if len(term) < LONG_CHARACTERS else 2)
        near = [text_in(searcher.doc(address), "text") for _, address in searcher.search(similar, NEAR_PAGES).hits]
        words = Counter(word for text in near for word in terms_of(text[:SCANNED_CHARACTERS_MAX]))
        if best := get_close_matches(term, [word for word, _ in words.most_common()], 1, 0.7):
            suggested = suggested.replace(atom.text, best[0])
    suggested = _OPTION.sub(r'"\g<0>"', suggested)
    if suggested == question.query:
        return ""
    query = QueryMatcher(index.schema, layout).query(QueryParser(suggested).parse())
    return suggested if searcher.search(_within(index.schema, query, question), 1).hits else ""
