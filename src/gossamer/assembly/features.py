"""Features: what a crawl can do without, built from the parts of a shard, and the order of its visit middleware."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from gossamer.assembly.home import Setup
from gossamer.assembly.modules import walls_of
from gossamer.assembly.parts import policy_of
from gossamer.assembly.revisits import is_continuous, may_be_called_back, wants_feeds
from gossamer.engine.commit import Storage
from gossamer.engine.counters import Telemetry
from gossamer.engine.examine import Examiner, page_of
from gossamer.engine.middleware import Middlewares
from gossamer.engine.optional import BrowserRendering, Hints, ShardExchange
from gossamer.engine.quarantine import Quarantine
from gossamer.engine.traps import Trapping
from gossamer.features.permit import Exclusions, RobotsTxt, Usage, robots_verdict
from gossamer.features.revisit.hints import SitemapHints
from gossamer.features.revisit.revisiting import Enrolment, Revisiting
from gossamer.features.revisit.schedule import Schedule
from gossamer.features.revisit.websub import Subscriptions
from gossamer.features.walls import Walling
from gossamer.model.errors import ConfigError
from gossamer.model.links import ALLOWED, Prerequisite, Verdict, Visit
from gossamer.model.pages import Findings
from gossamer.model.visits import Content, Reply
from gossamer.plugins import build, naming, require_shapes
from gossamer.ports import VisitMiddleware
from gossamer.stages.archive.archive import Archives
from gossamer.stages.fetch.credentials import proxy_of, reveal
from gossamer.stages.frontier.frontier import Frontier
from gossamer.stages.robots.documents import SiteDocuments
from gossamer.stages.robots.robots import SiteRobots
from gossamer.stages.scope.chain import Chain
from gossamer.state.schema import REVISIT_STATE
from gossamer.url.name import Namer
from gossamer.url.url import Url
from gossamer.world.dice import unguessable

if TYPE_CHECKING:
    from gossamer.features.logins.sessions import Sessions
    from gossamer.features.mentions.mentions import Mentions
    from gossamer.features.proxies.pool import ProxyPool
    from gossamer.features.render.rendering import PageRendering
    from gossamer.features.requests import Requests

OWN = "components.middleware"
UNNAMED = ("name", "archived_as", "reads_body", "judges", "judges_unresolved", "before_begin")
"""Attributes that `naming` does not wrap: values, and a method that may wait."""
OWNERS_ALONE = 0o700
"""Mode of the directory that holds cookies, or secrets of hubs."""


class FeatureParts(msgspec.Struct, frozen=True):
    """The parts of a shard from which its features are built."""

    setup: Setup
    storage: Storage
    telemetry: Telemetry
    namer: Namer
    frontier: Frontier
    chain: Chain
    exclusions: Exclusions
    traps: Trapping
    robots: SiteRobots
    examiner: Examiner
    quarantine: Quarantine
    archives: Archives
    exchange: ShardExchange


class Recrawl(msgspec.Struct, frozen=True):
    """The revisits of a continuous crawl."""

    schedule: Schedule
    revisiting: Revisiting
    enrolment: Enrolment
    """Schedules the pages of an earlier batch crawl."""
    hubs: Subscriptions | None
    """WebSub; None if hubs cannot call back."""


class Features(msgspec.Struct, frozen=True):
    """The features of a shard, each where the crawl meets it."""

    middlewares: Middlewares
    hints: Hints
    rendering: BrowserRendering
    recrawl: Recrawl | None
    """None in a batch crawl."""
    requests: Requests | None
    """None without a list of requests."""
    sessions: Sessions | None
    """None without cookies and logins."""
    mentions: Mentions | None
    """None unless notices of links are accepted."""
    proxies: ProxyPool | None
    """None without a pool of proxies."""

    @property
    def durable(self) -> tuple[object, ...]:
        """Parts that may hold something for the next commit."""
        return (self.recrawl.schedule if self.recrawl is not None else None, self.rendering)


def features_of(parts: FeatureParts) -> Features:
    """Return the features of a shard. Its middleware is in the order in which it judges and changes requests: what
    costs least comes first, what keeps others waiting last. Raises ConfigError: a feature cannot be built.
    """
    config = parts.setup.config
    recrawl = _recrawl(parts)
    hints = _hints(parts, recrawl.schedule if recrawl is not None else None)
    sessions = _sessions(parts)
    requests = _requests(parts)
    mentions = _mentions(parts)
    proxies = _proxies(parts)
    ordered: list[VisitMiddleware | None] = [
        parts.exclusions,
        parts.traps,
        _robots_txt(parts) if config.robots.obey else None,
        proxies,
        _usage(parts),  # Its documents are requested if robots.txt allows it.
        _walls(parts),
        recrawl.revisiting if recrawl is not None else None,
        hints,
        sessions,  # Nothing after it sees values of cookies.
        sessions.lost if sessions is not None else None,
        requests,  # Its headers follow those of the session.
        sessions.logins if sessions is not None else None,  # One visit at a time uses a session.
        recrawl.hubs if recrawl is not None else None,
        mentions,
        *(_own(name, parts) for name in config.components.middleware),  # They allow nothing denied before.
    ]
    listed = [one for one in ordered if one is not None]
    parts.telemetry.counters.keep_warnings_of({one.name for one in listed})
    rendering = _rendering(parts, Middlewares(listed), sessions)
    middlewares = Middlewares([*listed, rendering.resources] if rendering is not None else listed)
    return Features(
        middlewares, hints or Hints(), rendering or BrowserRendering(), recrawl, requests, sessions, mentions, proxies
    )


def _recrawl(parts: FeatureParts) -> Recrawl | None:
    """Return the revisits of a continuous crawl, else None. Raises ConfigError: the frontier walks, the policy does not
    exist, or a continuous crawl is resumed as a batch crawl.
    """
    setup = parts.setup
    config = setup.config
    storage = parts.storage
    frontier = parts.frontier
    if not is_continuous(config):
        if storage.epochs.get("meta", REVISIT_STATE) is not None:
            # Due pages would be fetched only once more.
            raise ConfigError(
                "crawl.mode: this crawl is continuous and stays so, for its pages have due times; --mode continuous "
                "goes on, and --max-time or --max-pages ends it"
            )
        return None
    if config.frontier.strategy != "sweep" or config.components.frontier:
        raise ConfigError("crawl.mode: a continuous crawl needs frontier.strategy = sweep and no components.frontier")
    from gossamer.stages.seen.shingles import sketch, text_of  # noqa: PLC0415 - numpy, for continuous crawls alone

    options = config.revisit
    schedule = Schedule(storage.epochs, frontier, policy_of(options.policy), options, setup.dice, parts.exchange.has)
    sketcher = partial(sketch, lowest=False)
    revisiting = Revisiting(schedule, frontier, options.change, sketcher, text_of, conditional=options.conditional)
    type_of = parts.chain.effective_type
    enrolment = Enrolment(storage, parts.namer, revisiting, options.interval_s_mean, setup.clock, setup.dice, type_of)
    return Recrawl(schedule, revisiting, enrolment, _hubs(parts))


def _hints(parts: FeatureParts, revisits: Schedule | None) -> SitemapHints | None:
    """Return the hints of sitemaps and feeds; None if links are not followed."""
    config = parts.setup.config
    if config.crawl.mode == "offline":
        return None
    wanted = config.discovery.sitemaps
    clicks_count = config.scope.depth_max is not None or config.frontier.strategy == "walk"
    sitemaps = wanted == "always" or (wanted == "auto" and not clicks_count)
    name_url = parts.namer.name
    feeds = wants_feeds(config)
    return SitemapHints(parts.storage.epochs, config.discovery, name_url, revisits, sitemaps=sitemaps, feeds=feeds)


def _hubs(parts: FeatureParts) -> Subscriptions | None:
    """Return the subscriptions to hubs; None if hubs cannot call back, or a notification would change nothing. A hub's
    host may belong to another shard, and only that may send requests to it.
    """
    config = parts.setup.config
    if not (may_be_called_back(config) and parts.exchange.is_alone):
        return None
    parts.setup.home.state.chmod(OWNERS_ALONE)  # Callback addresses and what hubs sign with are secrets.
    base = config.websub.callback_url or config.console.public_url
    return Subscriptions(parts.storage.epochs, config.websub, base, parts.namer.name, _judge_of(parts), unguessable)


def _sessions(parts: FeatureParts) -> Sessions | None:
    """Return the sessions of a shard; None, without importing them, if there are none."""
    setup = parts.setup
    config = setup.config
    if not (config.cookies.is_on or config.login.rules):
        return None
    setup.home.state.chmod(OWNERS_ALONE)
    from gossamer.assembly.sessions import sessions  # noqa: PLC0415 - as the docstring says

    counters = parts.telemetry.counters
    unpark = parts.frontier.control.unpark
    return sessions(config, parts.storage.epochs, parts.namer, parts.exchange.has, counters, unpark, setup.clock.now())


def _requests(parts: FeatureParts) -> Requests | None:
    """Return the listed requests; None, without importing them, if there are none."""
    if not parts.setup.config.seeds.requests_file:
        return None
    from gossamer.features.requests import Requests  # noqa: PLC0415 - as the docstring says

    return Requests(parts.storage.epochs)


def _rendering(parts: FeatureParts, listed: Middlewares, sessions: Sessions | None) -> PageRendering | None:
    """Return the renderer of pages; None, without importing it, if no page is rendered."""
    if parts.setup.config.crawl.render == "never":
        return None
    from gossamer.assembly.rendering import page_rendering  # noqa: PLC0415 - as the docstring says

    gates = (parts.namer, parts.chain, listed.judge_resource, parts.frontier.control, sessions, parts.exchange)
    return page_rendering(parts.setup, gates, parts.archives, parts.examiner, parts.telemetry, parts.storage.epochs)


def _mentions(parts: FeatureParts) -> Mentions | None:
    """Return the receiver of link notices; None, without importing it, if they are not accepted."""
    options = parts.setup.config.webmention
    if not options.enabled:
        return None
    from gossamer.features.mentions.mentions import Mentions  # noqa: PLC0415 - as the docstring says

    return Mentions(parts.storage.epochs, options, parts.namer.name, _judge_of(parts), partial(_examine_source, parts))


def _judge_of(parts: FeatureParts) -> Callable[[Url, float], Verdict]:
    """Return a function that judges addresses that others name: hubs, and sources of notices."""

    def judge(url: Url, now: float) -> Verdict:
        if parts.exclusions.excludes(url):
            return Verdict(outcome="excluded", reason="its host is excluded")
        return robots_verdict(parts.robots, url, now) if parts.setup.config.robots.obey else ALLOWED

    return judge


def _examine_source(parts: FeatureParts, url: Url, reply: Reply) -> tuple[Content, Findings]:
    """Return content and findings of a document that is no visit's; nothing if a process may have died of it."""
    from gossamer.stages.process.embeds import EmbedExtractor  # noqa: PLC0415 - for notices of links alone

    if parts.quarantine.suspects(url.fingerprint):
        return Content(b""), Findings()
    seen = parts.examiner.examine(reply, url.fingerprint)
    embeds = EmbedExtractor(parts.setup.config.process)
    if embeds.wants(reply.media_type):
        embeds.process(page_of(reply, seen.content), seen.findings)
    return seen.content, seen.findings


def _robots_txt(parts: FeatureParts) -> RobotsTxt:
    def note(prerequisite: Prerequisite, why: str) -> None:
        parts.telemetry.logs.info("robots", url=prerequisite.url.text, error=why)

    return RobotsTxt(parts.robots, parts.frontier.control, parts.namer.name, parts.exclusions.excludes, note)


def _proxies(parts: FeatureParts) -> ProxyPool | None:
    """Return the pool of proxies; None, without importing it, if there is none."""
    options = parts.setup.config.proxies
    urls = [(label, url) for label, listed in options.urls.items() for url in listed]
    if not urls:
        return None
    key = "proxies.urls"
    urls = [(label, proxy_of(reveal(url, f"{key}.{label}"), f"{key}.{label}")) for label, url in urls]
    from gossamer.features.proxies.pool import ProxyPool  # noqa: PLC0415 - as the docstring says

    counters = parts.telemetry.counters
    return ProxyPool(urls, options, counters.warn_for_now, counters.add)


def _usage(parts: FeatureParts) -> Usage:
    config = parts.setup.config
    robots = parts.robots
    purposes = config.operator.purpose
    documents = SiteDocuments(parts.storage.epochs, config.robots, parts.namer.name, robots, purposes)
    obeys = config.robots.obey
    return Usage(robots, documents, parts.frontier.control, parts.exclusions.excludes, purposes, obeys=obeys)


def _walls(parts: FeatureParts) -> Walling:
    def error_body(reply: Reply, visit: Visit) -> bytes:
        fingerprint = visit.url.fingerprint  # A process may have died of it.
        return b"" if parts.quarantine.suspects(fingerprint) else parts.examiner.content(reply, fingerprint).body

    config = parts.setup.config
    return Walling(walls_of(config), error_body, parts.frontier.control, closes=not is_continuous(config))


def _own(name: str, parts: FeatureParts) -> VisitMiddleware:
    control = parts.frontier.control
    middleware = build(name, OWN, epochs=parts.storage.epochs, name_url=parts.namer.name, unpark=control.unpark)
    if not isinstance(middleware, VisitMiddleware) or not middleware.name:
        raise ConfigError(f"{OWN}: {name} must derive from gossamer.ports.VisitMiddleware and have a name")
    methods = [method for method in vars(VisitMiddleware) if not method.startswith("_") and method not in UNNAMED]
    require_shapes(middleware, name, OWN, VisitMiddleware, [*methods, "before_begin"])
    naming(middleware, name, OWN, *methods, port=VisitMiddleware)
    return middleware
