"""Lost sessions: recognizes that a session that the crawl cannot renew has ended, and tells the operator once.

Cookies from a file may end during the crawl, and servers then answer with their login page and success. No single page
shows that: an account may not see all pages, and many sites have a form for logins somewhere. So what is counted is how
many of the last pages lead to a login.
"""

from collections import defaultdict
from collections.abc import Callable, Collection
from typing import Final
from urllib.parse import parse_qsl

from gossamer.model.links import Visit
from gossamer.model.visits import Reply
from gossamer.ports import Conclusion, ExaminedPage, VisitMiddleware
from gossamer.stages.process.forms import has_login_form
from gossamer.stages.process.links import redirect_target
from gossamer.url.url import Url

SCORE_MAX: Final = 3.0
"""A page that leads to a login counts one, a seed two; a quarter of all pages reaches this in the long run."""
KEPT: Final = 0.9
"""Part of the score that is left after another page."""
LOST_NAMED_MAX: Final = 20
"""Sites that the operator reads of."""
SITES_MAX: Final = 10_000
"""Sites whose score is known; with more, all are forgotten."""


class LostSessions(VisitMiddleware):
    """Watches sites with cookies from a file: 1 µs for a page, and a tree for one that mentions a password."""

    name = "lost_sessions"

    def __init__(
        self,
        sites: Collection[str] | None,
        has_cookies: Callable[[str], bool],
        renews: Callable[[Url], bool],
        warn: Callable[[str, str, str], None],
    ) -> None:
        """`sites` are those of the file; None if it was deleted since: then all that have cookies. `renews` says of a
        URL whether the crawl can log in again; `warn` gets this feature's name, a site and a sentence.
        """
        self._sites = sites
        self._has_cookies = has_cookies
        self._renews = renews
        self._warn = warn
        self._scores: defaultdict[str, float] = defaultdict(float)
        self._lost: set[str] = set()

    def settle(self, visit: Visit, reply: Reply, now: float) -> Conclusion | None:
        url = visit.url
        if 300 <= reply.status < 400 and self._watches(url):
            target = redirect_target(reply.url, reply.headers)
            if target is not None and _names(target, url):
                self._count(visit)
        return None

    def settle_document(self, page: ExaminedPage, now: float) -> Conclusion | None:
        visit = page.visit
        if self._watches(visit.url):
            if has_login_form(page.content.body, page.reply.charset):
                self._count(visit)
            else:
                self._scores[visit.url.site] *= KEPT
        return None

    def _watches(self, url: Url) -> bool:
        site = url.site
        if site in self._lost or self._renews(url):
            return False
        return self._has_cookies(site) if self._sites is None else site in self._sites

    def _count(self, visit: Visit) -> None:
        url = visit.url
        if len(self._scores) >= SITES_MAX:
            self._scores.clear()
        self._scores[url.site] += 2.0 if visit.depth == 0 else 1.0  # A seed is chosen for what it shows.
        if self._scores[url.site] >= SCORE_MAX and len(self._lost) < SITES_MAX:
            self._lost.add(url.site)
            if len(self._lost) <= LOST_NAMED_MAX:
                self._warn(self.name, url.site, _describe_lost(url))


def _describe_lost(url: Url) -> str:
    """Return a sentence about a site that showed its login at a URL."""
    return (
        f"{url.text} and others of {url.site} show a login: the session of its cookies has probably ended; "
        "stop the crawl, log in again with `gossamer login DIR URL`, and go on with `gossamer resume DIR`"
    )


def _names(target: str, url: Url) -> bool:
    """Return whether the query of a redirect's target names the page to lead back to, as `/login?next=/home` does."""
    values = [value for _, value in parse_qsl(target.partition("?")[2])]
    return any(value.startswith(("/", "http")) and url.text.endswith(value) for value in values)
