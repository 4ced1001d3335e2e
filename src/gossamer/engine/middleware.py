"""Middleware: the features of a shard's visits, by event. An event costs nothing that no feature handles."""

from collections.abc import Callable, Sequence
from typing import Concatenate, ParamSpec, TypeVar

from gossamer.engine.optional import ShardExchange
from gossamer.model.links import ALLOWED, Prerequisite, Verdict, Visit
from gossamer.model.visits import Failure, Reply
from gossamer.ports import VisitMiddleware
from gossamer.stages.frontier.scheduler import HostControl
from gossamer.url.url import Url

ELSEWHERE_S_MAX = 40.0
"""Longest wait of an origin for a document from another host; then it is requested again. A crash loses the request but
not the wait, which is in the host record."""

Judged = TypeVar("Judged", Url, Visit)
Event = ParamSpec("Event")
Answer = TypeVar("Answer")


class Middlewares:
    """The list of a shard's middleware, in the order in which they judge."""

    def __init__(self, middlewares: Sequence[VisitMiddleware]) -> None:
        base = VisitMiddleware
        listed = tuple(middlewares)
        self._by_name = {one.name: one for one in listed}
        judging = [one for one in listed if one.judges and _handlers([one], base.judge, base.judge_visit)]
        self.judge = _first_refusal([one.judge_visit for one in judging])
        """Returns whether the URL of a visit may be requested now. 5 µs if the rules of its site are in memory."""
        self.judge_resource = _first_refusal([one.judge_resource for one in judging])
        """Returns whether a resource of a rendered page may be requested now."""
        self.judge_unresolved = _first_refusal([one.judge_visit for one in listed if one.judges_unresolved])
        """Returns whether the address of a URL's host is worth a lookup."""
        self.reserves = _handlers(listed, base.reserve)
        self.releases = _handlers(listed, base.release)
        self.before_begin = _handlers(listed, base.before_begin)
        self._unsent = _handlers(listed, base.unsent)
        self.requests = _handlers(listed, base.request)
        self.routes = _handlers(listed, base.route)
        self.proxy_failures = _handlers(listed, base.proxy_failed)
        self.received = _handlers(listed, base.received)
        self.settles = _handlers(listed, base.settle)
        self.documents = _handlers(listed[::-1], base.settle_document)
        self.is_page = _agree(_handlers(listed, base.is_page))
        """Returns whether a document is the page that was requested."""
        self.may_repeat = _agree(_handlers(listed, base.may_repeat))
        """Returns whether the request for a URL may be sent again after a failure."""
        self.leads_on = _agree(_handlers(listed, base.leads_on))
        """Returns whether the redirect of a URL is followed."""
        self.bounces = _handlers(listed, base.bounces)
        self.concluded = _handlers(listed, base.concluded)
        self.moved = _handlers(listed, base.moved)

    def note_unsent(self, url: Url) -> None:
        """Take back the request for a URL: it was not sent, or the server did not act on it."""
        for unsent in self._unsent:
            unsent(url)

    def of(self, name: str) -> VisitMiddleware:
        """Return the middleware that prerequisite fetches and verdicts name as their owner."""
        return self._by_name[name]


def _first_refusal(judges: Sequence[Callable[[Judged, float], Verdict]]) -> Callable[[Judged, float], Verdict]:
    def first_refusal(judged: Judged, now: float) -> Verdict:
        for judge in judges:
            verdict = judge(judged, now)
            if not verdict.allowed:
                return verdict
        return ALLOWED

    return first_refusal


def _agree(handlers: Sequence[Callable[Event, bool]]) -> Callable[Event, bool]:
    return lambda *event, **more: all(handler(*event, **more) for handler in handlers)


def _handlers(
    listed: Sequence[VisitMiddleware], *methods: Callable[Concatenate[VisitMiddleware, Event], Answer]
) -> tuple[Callable[Event, Answer], ...]:
    """Return each of these methods that a middleware overrides, bound to it."""
    return tuple(
        getattr(one, method.__name__)
        for one in listed
        for method in methods
        if getattr(type(one), method.__name__) is not method
    )


class Prerequisites:
    """Hands the results of prerequisite fetches to their owners, and makes the next fetches that these return."""

    def __init__(
        self,
        middlewares: Middlewares,
        control: HostControl,
        excludes: Callable[[Url], bool],
        on_read: Callable[[Url], None],
        exchange: ShardExchange,
    ) -> None:
        """`excludes` says whether a URL must not be requested; `on_read` gets an origin whose document was read."""
        self._middlewares = middlewares
        self._control = control
        self._excludes = excludes
        self._on_read = on_read
        self._exchange = exchange

    def answer(self, prerequisite: Prerequisite, body: bytes, result: Reply | Failure, now: float) -> None:
        """Handle the result of a prerequisite fetch."""
        if isinstance(result, Failure) and result.again and self._run(prerequisite, now):
            return
        if prerequisite.is_about_origin and not self._exchange.has(prerequisite.origin):
            self._exchange.answer_prerequisite(prerequisite, result, body)
            return
        owner = self._middlewares.of(prerequisite.owner)
        further = owner.answered(prerequisite, result, body, now)
        while further is not None and not self._run(further, now):
            failure = Failure("host_closed", f"{further.url.text} cannot be requested now")
            further = owner.answered(further, failure, b"", now)
        if further is None and prerequisite.is_about_origin and isinstance(result, Reply):
            self._on_read(prerequisite.origin)

    def run_for(self, url: Url, prerequisite: Prerequisite, now: float) -> None:
        """Make a fetch for a URL whose host is parked for it."""
        if self._control.run_prerequisite(prerequisite, now):
            return
        if prerequisite.is_about_origin:
            self._control.unpark(url, now)  # Its host is closed, or has too many.
        else:
            self.answer(prerequisite, b"", Failure("host_closed", "its host cannot be requested now"), now)

    def run_elsewhere(self, prerequisite: Prerequisite, reason: str, now: float) -> None:
        """Fetch a document of another origin, through the gates of its host. The origin that refers to it waits."""
        if self._excludes(prerequisite.url) or not self._run(prerequisite, now):
            failure = Failure("robots_unreachable", f"{prerequisite.url.text} cannot be requested")
            self.answer(prerequisite, b"", failure, now)
            return
        self._control.hold(prerequisite.origin, now + ELSEWHERE_S_MAX, reason, now)

    def end_visit(self, url: Url, now: float) -> None:
        """Note that a visit is over."""
        for release in self._middlewares.releases:
            for waiting in release(url):
                self._control.unpark(waiting, now)

    def _run(self, prerequisite: Prerequisite, now: float) -> bool:
        """Make a prerequisite fetch. Its origin waits, but not the other origins of its host."""
        if not prerequisite.is_about_origin:
            return self._control.run_prerequisite(prerequisite, now)
        if self._exchange.has(prerequisite.url):
            runs = self._control.run_prerequisite(prerequisite, now)
        else:
            runs = self._exchange.run_prerequisite(prerequisite)
        if runs and prerequisite.url.host != prerequisite.origin.host:
            reason = f"its {prerequisite.subject or 'robots.txt'} is at {prerequisite.url.text}"
            self._control.hold(prerequisite.origin, now + ELSEWHERE_S_MAX, reason, now)
            self._control.unpark(prerequisite.origin, now)
        return runs
