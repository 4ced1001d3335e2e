"""Declared: everything odd that a made host can do, by name, with the share of hosts that do it."""

from __future__ import annotations

from typing import Literal, NamedTuple

Kind = Literal["robots", "host", "pages", "trap"]


class Behavior(NamedTuple):
    """One way to be odd."""

    name: str
    kind: Kind
    """A host has one kind of robots.txt, any traits of its own, and any pages and traps, each below `/NAME/`."""
    share: float
    """Of all hosts; at least one host shows it while there are hosts enough."""
    what: str
    right: str
    """What a right crawl makes of it."""


def _of_kind(kind: Kind, *rows: tuple[str, float, str, str]) -> list[Behavior]:
    return [Behavior(name, kind, share, what, right) for name, share, what, right in rows]


BEHAVIORS = (
    *_of_kind(
        "robots",
        ("robots_404", 0.35, "no robots.txt: everything allowed", "everything is fetched"),
        ("robots_allow", 0.2, "a robots.txt that allows everything", "everything is fetched"),
        ("robots_part", 0.1, "/private/ is disallowed", "all but /private/ is fetched"),
        ("robots_empty", 0.05, "an empty robots.txt", "everything is fetched"),
        (
            "robots_allow_inside",
            0.05,
            "allowed places inside a disallowed one: the longest rule decides",
            "the allowed places too are fetched",
        ),
        ("robots_wildcard", 0.05, "rules with * and $", "patterns are obeyed"),
        (
            "robots_named",
            0.03,
            "everything disallowed but for the named agent, and a similar name",
            "our own group holds",
        ),
        ("robots_merged", 0.02, "two groups for the named agent, which count as one", "both groups hold"),
        ("robots_403", 0.03, "403: everything allowed", "everything is fetched"),
        ("robots_crawl_delay", 0.03, "a Crawl-delay", "everything is fetched, with pauses"),
        ("robots_deny_all", 0.02, "everything disallowed", "nothing is fetched"),
        ("robots_redirect", 0.02, "301 to another path of the host", "the rules behind it hold"),
        ("robots_redirect_host", 0.02, "302 to another host; its text holds for this one", "the rules behind it hold"),
        ("robots_bom", 0.02, "a byte order mark before the first group", "the first group holds"),
        ("robots_crlf", 0.02, "lines that end in CR LF", "the rules hold"),
        ("robots_bad_bytes", 0.02, "bytes that are no UTF-8, and a zero, in a comment", "the rules hold"),
        ("robots_huge", 0.01, "490 KiB of comments before the group", "the rules behind it hold"),
        ("robots_endless", 0.01, "5 MiB of comments after the group; only with `traps`", "the rules before it hold"),
        ("robots_500_first", 0.02, "500 to the first two requests", "fetched when it answers"),
        ("robots_429_first", 0.01, "429 with Retry-After to the first request", "fetched when it answers"),
        ("robots_500", 0.01, "500 for ever: unreachable, everything disallowed", "nothing is fetched"),
        ("robots_stall", 0.01, "never answered: unreachable, everything disallowed", "nothing is fetched"),
    ),
    *_of_kind(
        "host",
        ("slow", 0.05, "every answer takes its time", "everything is fetched"),
        ("mirror", 0.05, "repeats the ordinary pages of another host byte for byte", "everything is fetched"),
        ("compressed", 0.2, "gzips ordinary pages for clients that take gzip", "everything is read"),
    ),
    *_of_kind(
        "pages",
        ("redirects", 0.3, "chains, loops, to other hosts, to another spelling, to nowhere", "each hop once, no loop"),
        (
            "errors",
            0.3,
            "4xx and 5xx, once or for ever, with Retry-After in seconds or as a date",
            "what is gone is requested once, what may return again",
        ),
        (
            "hangs",
            0.15,
            "stalls, drips, cut bodies, resets, no answer, no HTTP; one of them a host",
            "none holds up the rest",
        ),
        (
            "bodies",
            0.2,
            "content codings good and broken, framings, a bomb, an oversized page",
            "what can be read is read",
        ),
        ("copies", 0.2, "one body under several addresses", "each address once"),
        (
            "nofollow",
            0.2,
            "by meta element, by rel, by X-Robots-Tag, for us and for others",
            "nothing behind it is fetched",
        ),
        (
            "charsets",
            0.2,
            "UTF-8 and -16, Cyrillic, Japanese, said by header, meta element, mark",
            "every link is found",
        ),
        ("types", 0.3, "pictures, PDF, style sheets, plain text, JSON, no type at all", "only markup has links"),
        (
            "frames",
            0.3,
            "frames, areas, base, refresh, link elements and headers, odd markup",
            "every link is found, no bait",
        ),
        ("distinct", 0.2, "addresses that look alike and are different pages", "none is merged"),
        ("away", 0.1, "links to a name that does not exist and to a closed port", "both end by themselves"),
        ("embeds", 0.1, "images, srcset, scripts, media, style sheets and what these name", "each file once"),
        ("near", 0.1, "copies with a word or a number changed, beside others that share the frame", "each is fetched"),
        ("spellings", 0.1, "one page in a dozen equivalent spellings", "one page, requested once"),
    ),
    *_of_kind(
        "trap",
        (
            "hostile",
            0.05,
            "deep nesting, huge attributes, 800,000 comments, 100,000 links, a 10 GB bomb",
            "read, or cut short",
        ),
        ("lookalikes", 0.05, "a calendar of ten years, a catalogue, a blog: like traps, and none", "none is cut off"),
        (
            "sitemaps",
            0.1,
            "pages that only sitemaps name: an index, XML, gzip, plain text, RSS; and a page of another host",
            "each is found, and the other host is left alone",
        ),
        ("trap_calendar", 0.05, "every month of all years, and nothing in any", "cut off"),
        ("trap_session_path", 0.05, "ten pages, in a new session at each view, in the path", "cut off"),
        ("trap_session_query", 0.05, "the same in the query", "cut off"),
        ("trap_facets", 0.05, "forty products by every combination and order of filters", "cut off"),
        ("trap_depth", 0.05, "relative links that only lead deeper", "cut off"),
        ("trap_soft_404", 0.05, "every address answers 200 with the same words and relative links", "cut off"),
        ("trap_near", 0.05, "one article, one word in a hundred changed for each address", "cut off"),
        ("trap_segments", 0.05, "the same names below themselves", "cut off"),
        ("trap_maze", 0.05, "pages of random words, no two alike, each naming five new ones", "cut off"),
        ("trap_listings", 0.05, "directories in nine orders each, as Apache lists them", "shown once each"),
        (
            "floods",
            0.05,
            "chunks of one byte; chunk extensions, headers, interim replies and trailers without end",
            "what has content is read, the rest is ended",
        ),
        ("dead_ports", 0.05, "links to closed ports of the host", "they end, the host goes on"),
        (
            "schemes",
            0.05,
            "https on the port for http, and an answer as of a port for TLS",
            "they end, the host goes on",
        ),
        (
            "walls",
            0.05,
            "bot protection, prices and legal blocks instead of pages; a page with a request for consent",
            "each once, and no link in a wall",
        ),
        ("ttl_0", 0.05, "addresses that hold for no time (by DNS)", "everything is fetched"),
        ("farm", 0.05, "endless subdomains of one site at the host's address; only by DNS", "cut off"),
    ),
)
SHARES = {each.name: each.share for each in BEHAVIORS}
ROBOTS = tuple(each.name for each in BEHAVIORS if each.kind == "robots")
PAGED = tuple(each.name for each in BEHAVIORS if each.kind in ("pages", "trap"))
TRAPS = frozenset(each.name for each in BEHAVIORS if each.kind == "trap") | {"robots_endless"}
"""Behaviors that are off by default."""
RULED = frozenset(ROBOTS) - {"robots_404", "robots_allow"}
"""Kinds of robots.txt whose hosts get the pages of `private`, which most of them close."""
