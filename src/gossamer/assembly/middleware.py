"""Middleware: the one list of a shard's visit middleware, in its order."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from gossamer.assembly.modules import walls_of
from gossamer.assembly.ring import Recrawl
from gossamer.config import Config
from gossamer.engine.examine import Examiner
from gossamer.engine.logs import Logs
from gossamer.engine.quarantine import Quarantine
from gossamer.engine.traps import Trapping
from gossamer.features.permit import Exclusions, RobotsTxt, Usage
from gossamer.features.revisit.hints import SitemapHints
from gossamer.features.walls import Walling
from gossamer.model.errors import ConfigError
from gossamer.model.links import Prerequisite, Visit
from gossamer.model.visits import Reply
from gossamer.plugins import build, naming, require_shapes
from gossamer.ports import VisitMiddleware
from gossamer.stages.fetch.credentials import proxy_of, reveal
from gossamer.stages.frontier.scheduler import HostControl
from gossamer.stages.robots.documents import SiteDocuments
from gossamer.stages.robots.robots import SiteRobots
from gossamer.state.epoch import Epochs
from gossamer.url.name import Namer

if TYPE_CHECKING:
    from gossamer.features.logins.sessions import Sessions
    from gossamer.features.mentions.mentions import Mentions
    from gossamer.features.requests import Requests

OWN = "components.middleware"
UNNAMED = ("name", "archived_as", "reads_body", "judges", "judges_unresolved", "before_begin")
"""Attributes that `naming` does not wrap: values, and a method that may wait."""


class Features(msgspec.Struct, frozen=True):
    """The parts from which a shard's middleware is built, and the features that have further work in a crawl."""

    config: Config
    epochs: Epochs
    namer: Namer
    control: HostControl
    exclusions: Exclusions
    robots: SiteRobots
    traps: Trapping
    examiner: Examiner
    quarantine: Quarantine
    logs: Logs
    recrawl: Recrawl | None
    """None in a batch crawl."""
    hints: SitemapHints | None
    sessions: Sessions | None
    requests: Requests | None
    mentions: Mentions | None
    warn_for_now: Callable[[str, str], None]
    """Shows the operator a sentence about a subject; an empty one ends that."""


def middleware_of(features: Features) -> list[VisitMiddleware]:
    """Return the middleware of a shard, in the order in which it judges and changes requests: what costs least comes
    first, what keeps others waiting last. Raises ConfigError: a middleware of the operator's cannot be built.
    """
    config = features.config
    sessions = features.sessions
    recrawl = features.recrawl
    listed: list[VisitMiddleware | None] = [
        features.exclusions,
        features.traps,
        _robots_txt(features) if config.robots.obey else None,
        _proxies(features),
        _usage(features),  # Its documents are requested if robots.txt allows it.
        _walls(features),
        recrawl.revisiting if recrawl is not None else None,
        features.hints,
        sessions,  # Nothing after it sees values of cookies.
        sessions.lost if sessions is not None else None,
        features.requests,  # Its headers follow those of the session.
        sessions.logins if sessions is not None else None,  # One visit at a time uses a session.
        recrawl.hubs if recrawl is not None else None,
        features.mentions,
        *(_own(name, features) for name in config.components.middleware),  # They allow nothing denied before.
    ]
    return [one for one in listed if one is not None]


def _robots_txt(features: Features) -> RobotsTxt:
    def note(prerequisite: Prerequisite, why: str) -> None:
        features.logs.info("robots", url=prerequisite.url.text, error=why)

    return RobotsTxt(features.robots, features.control, features.namer.name, features.exclusions.excludes, note)


def _proxies(features: Features) -> VisitMiddleware | None:
    """Return the pool of proxies; None, without importing it, if there is none."""
    options = features.config.proxies
    urls = [(label, url) for label, listed in options.urls.items() for url in listed]
    if not urls:
        return None
    key = "proxies.urls"
    urls = [(label, proxy_of(reveal(url, f"{key}.{label}"), f"{key}.{label}")) for label, url in urls]
    from gossamer.features.proxies.pool import ProxyPool  # noqa: PLC0415 - as the docstring says

    return ProxyPool(urls, options, features.warn_for_now)


def _usage(features: Features) -> Usage:
    config = features.config
    robots = features.robots
    purposes = config.operator.purpose
    documents = SiteDocuments(features.epochs, config.robots, features.namer.name, robots, purposes)
    obeys = config.robots.obey
    return Usage(robots, documents, features.control, features.exclusions.excludes, purposes, obeys=obeys)


def _walls(features: Features) -> Walling:
    def error_body(reply: Reply, visit: Visit) -> bytes:
        fingerprint = visit.url.fingerprint  # A process may have died of it.
        return b"" if features.quarantine.suspects(fingerprint) else features.examiner.decode(reply, fingerprint)

    return Walling(walls_of(features.config), error_body, features.control, closes=features.recrawl is None)


def _own(name: str, features: Features) -> VisitMiddleware:
    control = features.control
    namer = features.namer
    middleware = build(name, OWN, epochs=features.epochs, name_url=namer.name, unpark=control.unpark)
    if not isinstance(middleware, VisitMiddleware) or not middleware.name:
        raise ConfigError(f"{OWN}: {name} must derive from gossamer.ports.VisitMiddleware and have a name")
    methods = [method for method in vars(VisitMiddleware) if not method.startswith("_") and method not in UNNAMED]
    require_shapes(middleware, name, OWN, VisitMiddleware, [*methods, "before_begin"])
    naming(middleware, name, OWN, *methods, port=VisitMiddleware)
    return middleware
