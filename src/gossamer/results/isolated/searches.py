"""Searches: questions to full-text indexes, answered by a separate process."""

from pathlib import Path

import msgspec

from gossamer.model import verbs
from gossamer.model.extras import missing
from gossamer.results.isolated.questions import AnswerBounds, Questions, answer_questions
from gossamer.results.search.folder import indexes_of, no_index
from gossamer.results.search.question import QueryError, SearchQuestion

SEARCHING = AnswerBounds(
    kind="search",
    name="the search",
    plural="queries",
    advice="simplify the query",
    remedy="; simplify the query. If every query fails, rebuild the index with `gossamer search DIR --build`",
    answer_s_max=8.0,
    processor_s_max=5.0,
    memory_bytes_max=512 << 20,
    waiting_max=16,
    idle_s_max=30.0,
    answer_bytes_max=8 << 20,
)


class SearchRequest(msgspec.Struct, array_like=True, frozen=True):
    """Input of the search process."""

    folders: tuple[str, ...]
    question: SearchQuestion


class Searches(Questions):
    """Searches in any crawl's index, one query at a time."""

    def __init__(self, bounds: AnswerBounds = SEARCHING) -> None:
        super().__init__(bounds)

    async def search(
        self, directory: Path, query: str, *, limit: int = 10, host: str = "", site: str = "", language: str = ""
    ) -> verbs.SearchResults:
        """Return the pages of a crawl that answer a query best. Raises as `ask`, and:

        RefusedError: the query passes a bound or cannot be run.
        ConflictError: tantivy is missing; there is no index, or it cannot be read.
        """
        if (reason := missing("tantivy", "search")) is not None:
            raise verbs.ConflictError(reason)
        question = SearchQuestion(query, limit, host, site, language)
        try:
            question.check()
        except QueryError as error:
            raise verbs.RefusedError(str(error)) from error
        folders = indexes_of(directory)
        if not folders:
            raise verbs.ConflictError(no_index(directory))
        return await self.ask(SearchRequest(tuple(map(str, folders)), question), verbs.SearchResults)


def answer_queries() -> None:
    """Answer until the pool closes: what the search process does, within limits that the kernel keeps."""
    from gossamer.results.search.query import search  # noqa: PLC0415 - the process that asks does without it

    def answer(asked: SearchRequest) -> verbs.SearchResults:
        try:
            return search([Path(folder) for folder in asked.folders], asked.question)
        except QueryError as error:
            raise verbs.RefusedError(str(error)) from error

    answer_questions(SEARCHING, SearchRequest, answer)
