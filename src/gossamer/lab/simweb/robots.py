"""Robots: the made robots.txt of every kind, and what a right reader makes of each (RFC 9309).

The groups are data (`robots.toml`).
"""

import pkgutil
import re
import tomllib
from functools import lru_cache
from typing import Literal

import msgspec

from gossamer.lab.simweb.hosts import WebHost
from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.sheet import TEXT, ServedAnswer

HUGE_BYTES = 490 * 1024
"""Bytes before the rule that matters: RFC 9309, section 2.5, requires a limit of at least 500 KiB."""
ENDLESS_BYTES = 5 << 20
FILLER = b"# nothing to see on this line, nor on the many that follow it\n"
STANDING = re.compile(r"/robots[a-z.-]*\.txt")
"""Paths of robots.txt and of its redirect's target: no rule applies to them."""
_GROUPS: dict[str, list[dict[str, list[str]]]] = tomllib.loads(
    (pkgutil.get_data("gossamer.lab.simweb", "robots.toml") or b"").decode()
)


class Group(msgspec.Struct, frozen=True):
    """One group: for whom, and the lines `(allow, pattern)`."""

    agents: tuple[str, ...]
    rules: tuple[tuple[bool, str], ...]
    crawl_delay_s: float = 0.0


class RobotsPlan(msgspec.Struct, frozen=True):
    """A host's robots.txt and its consequences."""

    answers: tuple[ServedAnswer, ...]
    """To the first, second … request for /robots.txt."""
    verdict: Literal["rules", "unreachable"] = "rules"
    groups: tuple[Group, ...] = ()
    moved_to: tuple[str, str] | None = None
    """Host name and path where the text is."""


BROKEN = ServedAnswer(500, TEXT, b"")
WITHOUT_GROUPS = {
    "robots_404": RobotsPlan((ServedAnswer(404, TEXT, b"none\n"),)),
    "robots_403": RobotsPlan((ServedAnswer(403, TEXT, b"none\n"),)),
    "robots_empty": RobotsPlan((ServedAnswer(200, TEXT, b""),)),
    "robots_500": RobotsPlan((BROKEN,), "unreachable"),
    "robots_stall": RobotsPlan((ServedAnswer(200, TEXT, b"", "stall"),), "unreachable"),
}


def plan(kind: str, host: WebHost, options: SimwebOptions, shared_by: WebHost) -> RobotsPlan:
    """Return the plan of one kind of robots.txt. `shared_by` is the host that serves it for others."""
    if kind in WITHOUT_GROUPS:
        return WITHOUT_GROUPS[kind]
    groups = groups_of(kind, options)
    answer = ServedAnswer(200, TEXT, _text(kind, groups))
    match kind:
        case "robots_redirect":
            moved = ServedAnswer(301, (*TEXT, ("Location", "/robots-real.txt")))
            return RobotsPlan((moved,), groups=groups, moved_to=(host.name, "/robots-real.txt"))
        case "robots_redirect_host":
            elsewhere = f"http://{shared_by.name}{options.port_suffix}/robots-shared.txt"
            moved = ServedAnswer(302, (*TEXT, ("Location", elsewhere)))
            return RobotsPlan((moved,), groups=groups, moved_to=(shared_by.name, "/robots-shared.txt"))
        case "robots_500_first":
            return RobotsPlan((BROKEN, BROKEN, answer), groups=groups)
        case "robots_429_first":
            busy = ServedAnswer(429, TEXT, b"", retry_after_s=options.retry_after_s)
            return RobotsPlan((busy, answer), groups=groups)
    return RobotsPlan((answer,), groups=groups)


def groups_of(kind: str, options: SimwebOptions) -> tuple[Group, ...]:
    """Return the groups that a kind of robots.txt holds."""
    return tuple(
        Group(
            tuple(agent.format(agent=options.agent, AGENT=options.agent.upper()) for agent in group["agents"]),
            tuple((rule.startswith("Allow"), rule.partition(" ")[2]) for rule in group["rules"]),
            options.crawl_delay_s if kind == "robots_crawl_delay" else 0.0,
        )
        for group in _GROUPS.get(kind, _GROUPS["robots_part"])
    )


def allows(groups: tuple[Group, ...], agent: str, path: str) -> bool:
    """Return whether `agent` may fetch `path` (with its query). The longest rule decides; of equals, Allow."""
    best = (-1, True)
    for group in _applying(groups, agent):
        for allow, pattern in group.rules:
            if len(pattern) >= best[0] and _pattern(pattern).match(path):
                best = max(best, (len(pattern), allow))
    return best[1] or STANDING.fullmatch(path) is not None


def crawl_delay_s(groups: tuple[Group, ...], agent: str) -> float:
    """Return the Crawl-delay that holds for `agent`, 0 without one."""
    return max((group.crawl_delay_s for group in _applying(groups, agent)), default=0.0)


def _applying(groups: tuple[Group, ...], agent: str) -> list[Group]:
    token = agent.lower()
    named = [group for group in groups if any(name.lower() == token for name in group.agents)]
    return named or [group for group in groups if "*" in group.agents]


@lru_cache(maxsize=256)
def _pattern(pattern: str) -> re.Pattern[str]:
    body = ".*".join(re.escape(piece) for piece in pattern.removesuffix("$").split("*"))
    return re.compile(body + ("$" if pattern.endswith("$") else ""))


@lru_cache(maxsize=64)
def _text(kind: str, groups: tuple[Group, ...]) -> bytes:
    lines = ["# What robots may do here."]
    for group in groups:
        lines += [f"User-agent: {agent}" for agent in group.agents]
        if group.crawl_delay_s:
            lines.append(f"Crawl-delay: {group.crawl_delay_s:g}")
        lines += [f"{'Allow' if allow else 'Disallow'}: {pattern}" for allow, pattern in group.rules]
        lines.append("")
    text = "\n".join(lines) + "\n"
    match kind:
        case "robots_bom":
            # The very first line is the group's: a reader that keeps the mark loses it.
            return b"\xef\xbb\xbf" + text.partition("\n")[2].encode()
        case "robots_crlf":
            return text.replace("\n", "\r\n").encode()
        case "robots_bad_bytes":
            return b"# caf\xe9 \xff\xfe \x00\n" + text.encode()
        case "robots_huge":
            return FILLER * (HUGE_BYTES // len(FILLER)) + text.encode()
        case "robots_endless":
            return text.encode() + FILLER * (ENDLESS_BYTES // len(FILLER))
        case _:
            return text.encode()


def text_of(kind: str, options: SimwebOptions) -> bytes:
    """Return the text of robots.txt as a kind of host serves it in the end, wherever it is."""
    return _text(kind, groups_of(kind, options))
