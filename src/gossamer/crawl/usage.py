"""Usage: what a crawl does about statements on the use of pages, given the purposes that its operator declares.

A page whose site refuses all of the purposes is not requested. A page that refuses them itself is not kept. Without a
declared purpose nothing is refused: statements are recorded, and no document except robots.txt is requested.
"""

from __future__ import annotations

from collections.abc import Sequence

from gossamer.model.links import Prerequisite
from gossamer.model.pages import PageRow
from gossamer.model.usage import REFUSED, UNKNOWN, Statement, UsageAnswer, reasons, resolve, texts
from gossamer.robots.documents import SiteDocuments
from gossamer.robots.robots import SiteRobots
from gossamer.url.url import Url


class Usage:
    """Resolves statements. About 5 µs for a page without statements."""

    def __init__(self, robots: SiteRobots, documents: SiteDocuments, purposes: Sequence[str] = ()) -> None:
        """`purposes` are those of `model.usage` that the operator declares."""
        self._robots = robots
        self._purposes = tuple(purposes)
        self.is_purpose_declared = bool(purposes)
        """Whether a purpose is declared; otherwise no URL waits for a document or is refused."""
        self._documents = documents
        self.answer = documents.answer
        """Handles the result of a request for a document; returns the target of a redirect, if any."""
        self.requested = documents.requested
        """Notes that a document of another origin is being requested."""

    def missing(self, url: Url, now: float) -> Prerequisite | float | None:
        """Return the request for a document that must be read before a URL is requested; or a time to check again, if
        the document is already being requested for another origin; None if no document is missing.
        """
        return self._documents.missing(url, now) if self._purposes else None

    def refused(self, url: Url, now: float) -> str:
        """Return why a URL must not be requested; empty if it may be."""
        if not self._purposes:
            return ""
        stated = self._of_site(url)
        return self._refusal(resolve(stated, now)) if stated else ""

    def judge(self, url: Url, found: Sequence[Statement], row: PageRow, *, is_read: bool = True) -> str:
        """Write the statements about a page's use into its row; return why the page must not be kept, empty if it may
        be. `found` are the statements of the page and its headers. A copy that was not read (`is_read` False) allows
        nothing.
        """
        of_site = self._of_site(url) if self._purposes else self._robots.statements(url)
        if not (of_site or found):
            return ""
        stated = (*of_site, *found)
        answers = resolve(stated, row.fetched_at)
        if not is_read:
            answers = {
                purpose: one if one.value == REFUSED else UsageAnswer(UNKNOWN) for purpose, one in answers.items()
            }
        row.usage_search, row.usage_archive = answers["search"].value, answers["archive"].value
        row.usage_ai_train, row.usage_ai_input = answers["ai-train"].value, answers["ai-input"].value
        row.usage_reason, row.usage_statements = reasons(answers), texts(stated)
        return self._refusal(answers)

    def _of_site(self, url: Url) -> tuple[Statement, ...]:
        return (*self._robots.statements(url), *self._documents.statements(url))

    def _refusal(self, answers: dict[str, UsageAnswer]) -> str:
        declared = {purpose: answers[purpose] for purpose in self._purposes}
        if not declared or any(answer.value != REFUSED for answer in declared.values()):
            return ""
        return reasons(declared)
