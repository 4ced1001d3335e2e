"""Rules: parses a robots.txt for our product tokens (RFC 9309, sections 2.2 and 2.3.1).

Where the standard leaves a choice, the interpretation with fewer requests is used; `docs/reference/robots.md` lists
these cases, and every difference from Google's parser.
"""

import codecs
import re
from collections.abc import Iterator, Sequence
from typing import Self

from gossamer.model.usage import CONTENT_USAGE, Rank, Statement, content_signal, content_usage, statement
from gossamer.stages.robots.patterns import Matcher, Pattern, pattern_of, target_of

BODY_BYTES_MAX = 512_000
LINE_BYTES_MAX = 16_663
"""The rest of a longer line is not read. Google's parser has the same bound."""
SITEMAPS_MAX = 1_000
RULES_BYTES = 1_000
SITEMAP_BYTES = 100
STATED_BYTES = 3_000
"""Upper bound of the memory of rules, and of a sitemap and a statement without their texts."""
_AGENT = re.compile(rb"\*(?=\s|\Z)|[A-Za-z_-]+")
# A key is recognized by its beginning, as in Google's parser, which accepts these misspellings too.
_KEYS = (
    (re.compile(rb"user-agent|useragent|user agent", re.IGNORECASE), "agent"),
    (re.compile(rb"allow", re.IGNORECASE), "allow"),
    (re.compile(rb"disallow|dissallow|dissalow|disalow|diasllow|disallaw", re.IGNORECASE), "disallow"),
    (re.compile(rb"sitemap|site-map", re.IGNORECASE), "sitemap"),
    (re.compile(rb"crawl-delay|crawldelay", re.IGNORECASE), "delay"),
    # These must match completely: they are new keys without misspellings in use.
    (re.compile(rb"content-usage\Z", re.IGNORECASE), "usage"),
    (re.compile(rb"content-signals?\Z", re.IGNORECASE), "signal"),
    (re.compile(rb"license\Z", re.IGNORECASE), "license"),
    (re.compile(rb"llm-policy\Z", re.IGNORECASE), "policy"),
)
_COMMON = {
    b"User-agent": "agent", b"Allow": "allow", b"Disallow": "disallow", b"Sitemap": "sitemap", b"Crawl-delay": "delay",
    b"Content-Usage": "usage", b"Content-Signal": "signal",
}  # fmt: skip
"""The usual spellings, looked up rather than searched for."""
_STATED = {"usage": CONTENT_USAGE, "signal": "Content-Signal", "license": "License", "policy": "LLM-Policy"}
"""Kinds of lines that state something about the use of pages, and their names."""
_RULES = frozenset(("allow", "disallow"))
STATEMENTS_MAX = 500
"""Such lines that are read per file, each with at most `STATEMENT_BYTES_MAX` bytes."""
STATEMENT_BYTES_MAX = 2_000
_NO_COLON = re.compile(rb"\A\Z|[/*]|\s(?:https?|ftp)\Z", re.IGNORECASE)
"""Matches the text before the first colon of a line if that colon is part of the value, or missing."""
_UTF8_MARKS = (codecs.BOM_UTF8, codecs.BOM_UTF8[:2], codecs.BOM_UTF8[:1])
_UTF16 = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}


class RobotsRules:
    """The rules of one robots.txt for us. Immutable."""

    def __init__(
        self,
        matcher: Matcher,
        crawl_delay_s: float | None = None,
        sitemaps: tuple[str, ...] = (),
        also: Self | None = None,
        stated: Sequence[tuple[str, bytes]] = (),
    ) -> None:
        self._matcher = matcher
        self._stated = tuple(stated)
        self._statements: tuple[tuple[Pattern, Statement], ...] | None = None
        self._also = also
        """Rules by the other possible encoding of a file. A URL is allowed if both allow it."""
        self.crawl_delay_s = crawl_delay_s
        """Requested seconds between requests, or None."""
        self.sitemaps = sitemaps
        """URLs of sitemaps as written, at most `SITEMAPS_MAX`."""
        self.held_bytes: int = RULES_BYTES + matcher.held_bytes + (also.held_bytes if also is not None else 0)
        """Upper bound of its memory."""
        self.held_bytes += sum([SITEMAP_BYTES + 4 * len(one) for one in sitemaps])
        self.held_bytes += sum([STATED_BYTES + 8 * len(value) for _, value in stated])

    @classmethod
    def parse(
        cls,
        body: bytes,
        product_token: str = "gossamer",  # noqa: S107
        bytes_max: int = BODY_BYTES_MAX,
        origin: str = "",
        agents: Sequence[str] = (),
    ) -> Self:
        """Parse a file: any bytes are a robots.txt, at worst one without rules. Linear; about 0.6 µs a line.

        `origin` is the origin of the file: rules with absolute URLs of other hosts are ignored. `agents` are further
        product tokens: if no group names `product_token`, the groups of the first of these tokens in the file apply.
        """
        rules: Self | None = None
        tokens = tuple(token.lower().encode() for token in (product_token, *agents))
        for text in readings(cut(body, bytes_max)):
            reading = _RobotsReading(tokens, origin)
            reading.read(text)
            ours = reading.ours()
            sitemaps = reading.sitemaps
            delay_s = ours.crawl_delay_s
            if rules is not None:
                delay_s = max((one for one in (delay_s, rules.crawl_delay_s) if one is not None), default=None)
                sitemaps = list(dict.fromkeys((*rules.sitemaps, *sitemaps)))[:SITEMAPS_MAX]
            rules = cls(Matcher(ours.rules), delay_s, tuple(sitemaps), rules, reading.statements())
        assert rules is not None, "a file has at least one reading"
        return rules

    def allows(self, url_or_path: str) -> bool:
        """Return whether we may fetch this: an absolute URL, or a path with its query. About 1 µs for most files."""
        path = target_of(url_or_path)
        if path == "/robots.txt":
            return True
        return self._matcher.allows(path) and (self._also is None or self._also.allows(path))

    @property
    def licenses(self) -> tuple[str, ...]:
        """Addresses of license documents, as written."""
        return tuple(value.decode("utf-8", "replace") for kind, value in self._stated if kind == "license")

    def statements(self, url_or_path: str) -> tuple[Statement, ...]:
        """Return the file's statements about the use of a URL. The first call for a file parses its lines.

        Among lines of one kind, those with the longest matching path count, as for Allow and Disallow
        (draft-ietf-aipref-attach, "Content-Usage Rule Semantics").
        """
        found = self._also.statements(url_or_path) if self._also is not None else ()
        if not self._stated:
            return found
        if self._statements is None:
            self._statements = tuple(_parse_statement(kind, value) for kind, value in self._stated)
        target = target_of(url_or_path)
        matching = [(len(path.text), one) for path, one in self._statements if path.matches(target)]
        longest: dict[str, int] = {}
        for length, one in matching:
            longest[one.kind] = max(longest.get(one.kind, 0), length)
        return (*found, *(one for length, one in matching if length == longest[one.kind]))


def _parse_statement(kind: str, value: bytes) -> tuple[Pattern, Statement]:
    """Return the path of a line, in normal form, and its statement."""
    path = b""
    if kind in ("usage", "signal") and value[:1] == b"/" and len(value.split(None, 1)) == 2:
        path, value = value.split(None, 1)
    text = value.decode("utf-8", "replace")
    answers: dict[str, bool] = {}
    if kind == "usage":
        answers = content_usage(value)
    elif kind == "signal":
        answers = content_signal(text)
    shown = f"{path.decode('utf-8', 'replace')} {text}" if path else text
    pattern = pattern_of(path, allow=True) if path else None
    return Pattern(pattern or ""), statement(Rank.SITE, "robots.txt", _STATED[kind], shown, answers)


class _Groups:
    """All groups of one agent, merged (section 2.2.1)."""

    def __init__(self) -> None:
        self.rules: dict[str, bool] = {}
        """By pattern in normal form: whether it allows. For equal patterns Allow wins (section 2.2.2)."""
        self.crawl_delay_s: float | None = None
        self.stated: list[tuple[str, bytes]] = []
        """Lines about the use of pages: kind and value."""

    def rule(self, pattern: str, *, allow: bool) -> None:
        self.rules[pattern] = self.rules.get(pattern, False) or allow

    def delay(self, value: bytes) -> None:
        match = re.match(rb"[0-9]{1,9}(?:\.[0-9]{0,9})?|\.[0-9]{1,9}", value)
        if match is not None:
            # The longest delay has the fewest requests.
            self.crawl_delay_s = max(self.crawl_delay_s or 0.0, float(match[0]))


class _RobotsReading:
    """One pass over the lines of a file."""

    def __init__(self, tokens: Sequence[bytes], origin: str) -> None:
        self._tokens = tokens
        self._origin = origin
        self._groups: dict[bytes, _Groups] = {}
        """By agent in the file: one of our tokens, or `*`."""
        self._outside = _Groups()
        """Lines before any group: only statements."""
        self._licenses: list[tuple[str, bytes]] = []
        self._lines_stated = 0
        self.sitemaps: list[str] = []

    def ours(self) -> _Groups:
        """Return the groups for the first of our product tokens in the file, else those for `*`."""
        return next((self._groups[one] for one in (*self._tokens, b"*") if one in self._groups), _Groups())

    def statements(self) -> list[tuple[str, bytes]]:
        """Return the lines with statements about the use of pages that apply to us.

        A `Content-Usage` belongs to its group. Some parsers apply `Content-Signal` to the whole file, and publishers
        write `License` at the end: if our own groups have none, those of `*`, or of all groups, apply.
        """
        ours = self.ours().stated
        kinds = {kind for kind, _ in ours}
        found = [one for one in self._outside.stated if one[0] not in kinds]
        if "signal" not in kinds and (anybody := self._groups.get(b"*")) is not None and anybody.stated is not ours:
            found += [one for one in anybody.stated if one[0] == "signal"]
        if "license" not in kinds:
            found = [one for one in found if one[0] != "license"] + self._licenses
        return [*ours, *found]

    def _other(self, kind: str, value: bytes, groups: list[_Groups]) -> None:
        """Process a record other than a rule: a delay, or a statement about the use of pages."""
        if kind == "delay":
            for group in groups:
                group.delay(value)
            return
        if not value or len(value) > STATEMENT_BYTES_MAX or self._lines_stated >= STATEMENTS_MAX:
            return
        self._lines_stated += 1
        if kind == "license":
            self._licenses.append((kind, value))
        for group in (self._outside,) if kind == "policy" else groups:
            group.stated.append((kind, value))

    def read(self, text: bytes) -> None:
        """Process all lines of a file."""
        in_agents = just_agents = False
        current: list[_Groups] = []
        delayed = [self._outside]
        for key, value in _records(text):
            if key == "agent":
                # By section 2.2.4 a delay or a statement does not end a group, but files are written as if it did: so
                # it applies to the agents since the last record of either kind.
                if not in_agents:
                    current = []
                if not just_agents:
                    delayed = []
                in_agents = just_agents = True
                if (groups := self._agent(value)) is not None:
                    current.append(groups)
                    delayed.append(groups)
            elif key == "sitemap":
                if value and len(self.sitemaps) < SITEMAPS_MAX:
                    self.sitemaps.append(value.decode("utf-8", "replace"))
            elif key not in _RULES:
                just_agents = False
                self._other(key, value, delayed)
            else:
                in_agents = just_agents = False
                pattern = pattern_of(value, allow=key == "allow", origin=self._origin) if current else None
                if pattern is not None:
                    for group in current:
                        group.rule(pattern, allow=key == "allow")

    def _agent(self, value: bytes) -> _Groups | None:
        """Return the groups of a `User-agent` line, or None if they cannot apply to us."""
        match = _AGENT.match(value)
        agent = match[0].lower() if match is not None else b""
        if agent not in self._tokens and agent != b"*":
            return None
        return self._groups.setdefault(agent, _Groups())


def cut(body: bytes, bytes_max: int) -> bytes:
    """Return the part of a file that is read: complete lines within the bound."""
    if len(body) <= bytes_max:
        return body
    end = max(body.rfind(b"\n", 0, bytes_max), body.rfind(b"\r", 0, bytes_max))
    return body[: end + 1]


def readings(text: bytes) -> Iterator[bytes]:
    """Yield the possible texts of a file without byte order mark: its octets, and these decoded as UTF-16.

    The second only for a file that begins like UTF-16. There are files that begin with the bytes FF FE and continue in
    ASCII, and files in UTF-16 without the mark.
    """
    encoding = _UTF16.get(text[:2])
    octets = text[2:] if encoding else text
    if encoding is None and b"\0" in text[:2] and len(text) > 1:
        encoding = "utf-16-be" if text[0] == 0 else "utf-16-le"
    if encoding is not None:
        # Removing NUL characters makes this work for UTF-32 too.
        yield octets.decode(encoding, "ignore").replace("\0", "").encode()
    for mark in _UTF8_MARKS:
        if octets.startswith(mark):
            octets = octets[len(mark) :]
            break
    yield octets


def _records(text: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield (kind, value) of the lines with a known key. A line ends with CR, LF or both."""
    nul = b"\0" in text
    for line in text.splitlines():
        if len(line) > LINE_BYTES_MAX:
            line = line[:LINE_BYTES_MAX]
        if nul:
            line = line.partition(b"\0")[0]  # Google's parser ignores the rest too.
        line = line.partition(b"#")[0].strip()
        if not line:
            continue
        key, colon, value = line.partition(b":")
        kind = _COMMON.get(key) if colon else None
        if kind is None:
            kind, value = _unusual(line, key.rstrip() if colon else b"", value)
        if kind is not None:
            yield kind, value.strip()


def _unusual(line: bytes, key: bytes, value: bytes) -> tuple[str | None, bytes]:
    """Return kind and value of a line with an unusual spelling of its key, or without a colon."""
    words = line.split()
    if len(words) == 2 and _NO_COLON.search(key) and (kind := _kind(words[0])) is not None:
        return kind, words[1]
    return (_kind(key) if key else None), value


def _kind(key: bytes) -> str | None:
    return next((kind for pattern, kind in _KEYS if pattern.match(key)), None)
