"""Members of the ports, read from the source: how each is written, when it is used, and what its docstring promises."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from gossamer import ports
from gossamer.stages.frontier.strategy import Strategy

PORTS: Mapping[str, type] = {
    one.__name__: one
    for one in (
        ports.Filter, ports.Prioritizer, ports.HostPrioritizer, ports.HistoryPrioritizer, ports.Bias, Strategy,
        ports.UrlSeen, ports.WaylessUrlSeen, ports.ContentSeen, ports.Resolver, ports.ProtocolModule,
        ports.ProcessingModule, ports.Archive, ports.PrerequisiteArchive, ports.EpochArchive, ports.RevisitPolicy,
        ports.VisitMiddleware,
    )
}  # fmt: skip
"""What users replace, in the order of the page."""
LINKS = "for each link that passed the built-in filters"
START = "once, when the crawl starts"
WHEN: Mapping[str, str] = {
    "Filter.name": "in `why`, `status` and logs",
    "Filter.rejects": f"{LINKS} (of known paths once only)",
    "Prioritizer.level": "for each URL that is queued",
    "HostPrioritizer.needs": START,
    "HostPrioritizer.host_level": "when its place among waiting hosts is set, at most once for each queued URL",
    "HistoryPrioritizer.level_by_history": "for each URL that is queued, in place of `level`",
    "Bias.choose": "when a host gets a place in memory, and when a host's next URL is chosen",
    "Strategy.watches_links": START,
    "Strategy.hold": "for each new URL, with its level",
    "Strategy.linked": "after a page is recorded",
    "Strategy.offer": "before each lease",
    "Strategy.can_offer": "before each lease, and when the queues are empty",
    "Strategy.finish": "after the last attempt at a URL",
    "Strategy.hosts": "for `status` and `report`",
    "Strategy.cut": "when an epoch closes",
    "UrlSeen.offer": "for the links of each page that passed the filters, in their order",
    "UrlSeen.way": "before a visit is recorded, and in `why`",
    "WaylessUrlSeen.knows": "in `why`, where `way` is None",
    "ContentSeen.find": "after a reply was received whole, and again when its body was decoded",
    "ContentSeen.remember": "after each of these, unless it was found",
    "RevisitPolicy.priced": START,
    "RevisitPolicy.rate": "after each visit of a continuous crawl, and for each cell of the census",
    "Resolver.cached": "when a URL of the host is next",
    "Resolver.resolve": "when `cached` returned None; for several hosts at once",
    "Resolver.close": "once, when the run ends",
    "ProtocolModule.fetch": "for each request, after all gates; several at once",
    "ProtocolModule.close": "once, when the run ends",
    "ProcessingModule.name": "in errors and counts",
    "ProcessingModule.wants": "once for each media type",
    "ProcessingModule.process": "for each page of such a type, after the modules before it",
    "Archive.add": "once for each attempt, in the order in which they end",
    "Archive.cut": "when an epoch closes, before its commit",
    "Archive.close": "when a run ends in order",
    "PrerequisiteArchive.add_prerequisite": "for each such reply",
    "EpochArchive.add_epoch": "after each commit",
    "VisitMiddleware.name": "in `why` and logs",
    "VisitMiddleware.archived_as": "when a reply to its own fetch is archived",
    "VisitMiddleware.reads_body": "when such a reply is received",
    "VisitMiddleware.judges": START,
    "VisitMiddleware.judges_unresolved": START,
    "VisitMiddleware.judge": "before a request, after exclusions, traps, robots.txt and logins allowed it",
    "VisitMiddleware.judge_visit": "in place of `judge`, where the URL is that of a visit",
    "VisitMiddleware.judge_resource": "before a rendered page gets a resource",
    "VisitMiddleware.reserve": "when all have allowed a request",
    "VisitMiddleware.wait": "when its own verdict makes a URL wait",
    "VisitMiddleware.release": "when a visit is over, in any case",
    "VisitMiddleware.before_begin": "after `reserve`; politeness is checked again after it",
    "VisitMiddleware.unsent": "in place of the calls below",
    "VisitMiddleware.request": "before the request is sent",
    "VisitMiddleware.route": "before any request is sent",
    "VisitMiddleware.proxy_failed": "when the proxy did not answer",
    "VisitMiddleware.received": "before anything else sees a reply",
    "VisitMiddleware.settle": "when a reply is complete, before its body is decoded",
    "VisitMiddleware.settle_document": "after modules read the page",
    "VisitMiddleware.is_page": "after `settle_document`",
    "VisitMiddleware.may_repeat": "after a failure",
    "VisitMiddleware.leads_on": "when a reply is a redirect",
    "VisitMiddleware.bounces": "when a redirect leads back to a URL of its chain",
    "VisitMiddleware.concluded": "after each attempt",
    "VisitMiddleware.moved": "when shards exchange partitions",
    "VisitMiddleware.refused": "before its own fetch",
    "VisitMiddleware.fetch": "before its own fetch is sent",
    "VisitMiddleware.bound": "when its own fetch begins",
    "VisitMiddleware.answered": "when its own fetch ends",
}
"""By member. A test requires one for each."""


class Member(NamedTuple):
    """A method or an attribute of a port."""

    name: str
    types: str
    when: str
    says: str


class Kind(NamedTuple):
    """A type that methods of ports take or return."""

    name: str
    module: str
    fields: tuple[str, ...]


def members_of(name: str) -> Iterator[Member]:
    """Yield the members that a port declares itself, in their order."""
    body = _class_of(PORTS[name]).body
    for number, node in enumerate(body):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_"):
            yield _member(name, node.name, _types(node), ast.get_docstring(node) or "")
        if isinstance(node, ast.AnnAssign | ast.Assign):
            target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
            after = body[number + 1] if number + 1 < len(body) else None
            text = after.value if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) else None
            yield _member(name, ast.unparse(target), _attribute(node), str(text.value) if text is not None else "")


def types_of() -> Iterator[Kind]:
    """Yield the types with fields that methods of ports name, in the order of names."""
    words = {word for name in PORTS for one in members_of(name) for word in re.findall(r"\b[A-Z]\w+", one.types)}
    words |= {"LastVisit", "Standing", "Found"}  # Fields of those.
    for word in sorted(words):
        found = next((kind for kind in map(_find(word), MODULES) if kind is not None), None)
        if found is not None:
            yield found


MODULES = ("gossamer.ports", "gossamer.model.standing", "gossamer.model.pages")


def _find(word: str) -> Any:
    def find(module: str) -> Kind | None:
        kind = getattr(importlib.import_module(module), word, None)
        fields = getattr(kind, "__struct_fields__", None)
        return Kind(word, kind.__module__, fields) if kind is not None and fields else None

    return find


def _class_of(port: type) -> ast.ClassDef:
    tree = ast.parse(inspect.getsource(port))
    node = tree.body[0]
    assert isinstance(node, ast.ClassDef)
    return node


def _member(port: str, name: str, types: str, text: str) -> Member:
    return Member(name, types, WHEN.get(f"{port}.{name}", ""), " ".join(text.split()).replace("|", "or"))


def _types(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    arguments = ", ".join(ast.unparse(one) for one in node.args.args[1:])
    returned = ast.unparse(node.returns) if node.returns is not None else "None"
    result = f" -> {returned}" if returned != "None" else ""
    if any(ast.unparse(one) == "property" for one in node.decorator_list):
        return returned
    wait = "async " if isinstance(node, ast.AsyncFunctionDef) else ""
    return f"{wait}({arguments}){result}".replace(" | ", " or ")


def _attribute(node: ast.AnnAssign | ast.Assign) -> str:
    default = f" = {ast.unparse(node.value)}" if node.value is not None else ""
    kind = ast.unparse(node.annotation) if isinstance(node, ast.AnnAssign) else ""
    return f"{kind}{default}".strip().replace("''", '""')
