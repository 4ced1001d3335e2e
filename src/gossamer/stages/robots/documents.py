"""Documents: an origin's statements about its use in separate files: tdmrep.json, and license documents of RSL.

They are requested like robots.txt, if that allows them, and only in a crawl whose purposes they may refuse. A document
that cannot be fetched counts as empty. A license may be on another origin (RSL, "Adding RSL to robots.txt"): it is
requested if that origin's robots.txt allows it, and one copy serves all origins that refer to it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from xml.parsers import expat

import msgspec

from gossamer.model.decodable import of_version
from gossamer.model.links import Prerequisite
from gossamer.model.usage import AI, Rank, Statement, statement, tdm_reservation
from gossamer.model.visits import Failure, Reply
from gossamer.stages.robots.gate import robots_url
from gossamer.stages.robots.options import RobotsOptions
from gossamer.stages.robots.patterns import Pattern, pattern_of, target_of
from gossamer.stages.robots.record import RecentlyUsed
from gossamer.stages.robots.robots import SiteRobots
from gossamer.stages.robots.rules import RobotsRules
from gossamer.state.epoch import Epochs
from gossamer.url.join import join
from gossamer.url.url import NameUrl, Url

TDMREP = "/.well-known/tdmrep.json"
LICENSES_MAX = 4
"""License documents that are read per origin."""
RULES_MAX = 500
"""Rules that are read per document."""
MEMORY_SHARE = 8
"""Documents, and their addresses, may each use the memory for rules of robots.txt divided by this."""
ASKED_S_MAX = 300.0
"""A request to another origin is repeated after this time without an answer."""
LOOK_AGAIN_S = 3.0
"""Interval of checks for a document that is being requested for another origin."""
VERSION = 1
_CLOSED = b"User-agent: *\nDisallow: /\n"
"""Rules in place of a robots.txt that could not be fetched (RFC 9309, section 2.3.1.4)."""
_RECORD_BYTES = 600
_RSL = "https://rslstandard.org/rsl"
_RSL_USES: Mapping[str, tuple[str, ...]] = {
    "all": ("search", *AI), "ai-all": AI, "ai-train": ("ai-train",), "ai-input": ("ai-input",), "search": ("search",),
}  # fmt: skip
_UNCONDITIONAL = frozenset(("", "free", "attribution"))
"""Types of payment for which a permission needs no contract."""

Rules = tuple[tuple[Pattern, Statement], ...]
"""Paths in normal form, with the statements about them."""


class DocumentRecord(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """One document as it was last fetched."""

    text: bytes
    expires_at: float
    version: int = VERSION


_decode = msgspec.msgpack.Decoder(DocumentRecord).decode

RECORDS = b"usage:"
"""Prefix of the keys of records, after the partition; the document's address follows."""


class SiteDocuments:
    """The documents of origins: durable with the epoch; recently used ones are in memory."""

    def __init__(
        self, epochs: Epochs, options: RobotsOptions, name: NameUrl, robots: SiteRobots, purposes: Sequence[str] = ()
    ) -> None:
        """`name` returns the `Url` of an address; `robots` returns the licenses of an origin, and decides what may be
        fetched. Only documents that may refuse one of `purposes` are read.
        """
        self._tdm = not frozenset(AI).isdisjoint(purposes)
        self._rsl = not frozenset(_RSL_USES["all"]).isdisjoint(purposes)
        self._epochs = epochs
        self._options = options
        self.name = name
        self._robots = robots
        hosts_max = options.cache_hosts_max
        bytes_max = options.cache_bytes_max // MEMORY_SHARE
        self._held: RecentlyUsed[tuple[str, str], tuple[float, Rules]] = RecentlyUsed(hosts_max, bytes_max)
        self._names: RecentlyUsed[str, tuple[tuple[str, ...], tuple[Url, ...]]] = RecentlyUsed(hosts_max, bytes_max)
        self._shared: RecentlyUsed[str, DocumentRecord] = RecentlyUsed(hosts_max, bytes_max)
        """Documents from another origin than the one that refers to them, so that further origins need no request."""
        self._asked: RecentlyUsed[str, float] = RecentlyUsed(hosts_max, bytes_max)
        """By address: until when an answer from another origin is expected."""

    def missing(self, url: Url, now: float) -> Prerequisite | float | None:
        """Return the request for the first unknown document; or a time to check again, if it is being requested for
        another origin; None if all are known, or none is needed.
        """
        for target in self._documents_of(url):
            if self._is_known(url, target.text, now):
                continue
            if target.origin != url.origin:
                if (further := self._elsewhere(url, target, now)) is not None:
                    return further
            elif self._robots.verdict(target, now).kind == "allowed":
                return _request(url, target)
        return None

    def _elsewhere(self, url: Url, target: Url, now: float) -> Prerequisite | float | None:
        """Return the next request for a document of another origin: first for its robots.txt, then for itself."""
        said = self._robots.verdict(target, now).kind
        if said == "unknown":
            # Another shard may own the origin, so its robots.txt is read here as an additional document.
            rules = self.name(robots_url(target))
            if rules is None:
                return None
            if not self._is_known(url, rules.text, now):
                return self._request_or_wait(url, rules, now)
            record = _read(self._epochs.get("meta", _key(url, rules.text)) or b"")
            options = self._options
            if record is not None and not RobotsRules.parse(
                record.text, options.product_token, options.body_bytes_max, target.origin, options.agents
            ).allows(target.text):
                self._keep(url, target.text, DocumentRecord(b"", record.expires_at))
                return None
        elif said != "allowed":
            return None
        return self._request_or_wait(url, target, now)

    def _request_or_wait(self, url: Url, target: Url, now: float) -> Prerequisite | float:
        is_asked = now < (self._asked.get(target.text) or 0.0)
        return now + LOOK_AGAIN_S if is_asked else _request(url, target)

    def note_request(self, prerequisite: Prerequisite, now: float) -> None:
        """Note that a document of another origin is being requested."""
        self._asked.put(prerequisite.subject, now + ASKED_S_MAX, _RECORD_BYTES)

    def statements(self, url: Url) -> Iterator[Statement]:
        """Yield the statements of the known documents about a URL."""
        target = target_of(url.text)
        for document in self._documents_of(url):
            held = self._get(url, document.text)
            for path, one in held[1] if held is not None else ():
                if path.matches(target):
                    yield one
                    if document.text.endswith(TDMREP):
                        break  # "The most specific match is the first in sequence."

    def answer(self, prerequisite: Prerequisite, result: Reply | Failure, body: bytes, now: float) -> str | None:
        """Handle the result of a request; return the target if it is a redirect."""
        options = self._options
        text = b""
        ttl_s = options.ttl_s
        if isinstance(result, Failure) or result.status >= 500 or result.status == 429:
            text = _CLOSED if prerequisite.subject.endswith("/robots.txt") else b""
            ttl_s = options.retry_s_max
        elif 300 <= result.status < 400 and prerequisite.hops < options.redirects_max:
            location = result.header("location")
            target = join(result.url, location) if location is not None else None
            if target is not None and target.startswith(("http://", "https://")):
                return target
        elif result.status < 300:
            text = body[: options.body_bytes_max]
        record = DocumentRecord(text, now + ttl_s)
        self._keep(prerequisite.origin, prerequisite.subject, record)
        if not prerequisite.subject.startswith(prerequisite.origin.origin + "/"):
            self._shared.put(prerequisite.subject, record, _RECORD_BYTES + len(record.text))
            self._asked.put(prerequisite.subject, now, _RECORD_BYTES)
        return None

    def _is_known(self, url: Url, address: str, now: float) -> bool:
        """Return whether a document is known. A copy that was fetched for another origin is stored for this one too."""
        if (held := self._get(url, address)) is not None and now < held[0]:
            return True
        shared = self._shared.get(address)
        if shared is None or now >= shared.expires_at:
            return False
        self._keep(url, address, shared)
        return True

    def _keep(self, url: Url, address: str, record: DocumentRecord) -> None:
        self._epochs.put("meta", _key(url, address), msgspec.msgpack.encode(record))
        self._hold(url, address, record)

    def _documents_of(self, url: Url) -> tuple[Url, ...]:
        """Return the documents of a URL's origin, those on the same origin first."""
        if not self._rsl or not url.text.startswith("http"):
            return ()
        origin = url.origin
        written = self._robots.licenses(url)[:LICENSES_MAX]
        known = self._names.get(origin)
        if known is None or known[0] != written:
            joined = [address for one in written if (address := join(origin + "/", one)) is not None]
            web = [address for address in joined if address.startswith(("http://", "https://"))]
            web.sort(key=lambda address: not address.startswith(origin + "/"))
            addresses = dict.fromkeys([*([origin + TDMREP] if self._tdm else []), *web])
            known = written, tuple(named for one in addresses if (named := self.name(one)) is not None)
            self._names.put(origin, known, _RECORD_BYTES)
        return known[1]

    def _get(self, url: Url, address: str) -> tuple[float, Rules] | None:
        held = self._held.get((url.origin, address))
        if held is None:
            data = self._epochs.get("meta", _key(url, address))
            record = _read(data) if data is not None else None
            if record is not None:
                held = self._hold(url, address, record)
        return held

    def _hold(self, url: Url, address: str, record: DocumentRecord) -> tuple[float, Rules]:
        elsewhere = "" if address.startswith(url.origin + "/") else address
        read = tdm_rules(record.text) if address.endswith(TDMREP) else license_rules(record.text, url.origin, elsewhere)
        rules = tuple(read)
        held = record.expires_at, rules
        self._held.put((url.origin, address), held, _RECORD_BYTES * (1 + len(rules)))
        return held


def tdm_rules(text: bytes) -> Iterator[tuple[Pattern, Statement]]:
    """Yield the rules of a tdmrep.json, in order (TDMRep, "TDM File on the Origin Server"); none if it is not valid."""
    try:
        rules = msgspec.json.decode(text) if text else []
    except (msgspec.DecodeError, RecursionError):
        return
    for rule in rules[:RULES_MAX] if isinstance(rules, list) else ():
        location = rule.get("location") if isinstance(rule, dict) else None
        if not isinstance(location, str):
            continue
        path = pattern_of(location.encode("utf-8", "replace"), allow=True)
        said = rule.get("tdm-reservation")
        answers = tdm_reservation(str(said)) if isinstance(said, int | str) and not isinstance(said, bool) else {}
        if path is not None and answers:
            policy = rule.get("tdm-policy")
            more = f", tdm-policy {policy}" if isinstance(policy, str) else ""
            yield (
                Pattern(path),
                statement(Rank.SITE, "tdmrep.json", "tdm-reservation", f"{said} for {location}{more}", answers),
            )


def license_rules(text: bytes, origin: str, address: str = "") -> Iterator[tuple[Pattern, Statement]]:
    """Yield an RSL document's statements about its contents; none if it is not one. They name its `address`, if any."""
    if not text:
        return
    try:
        contents = _Contents().read(text)
    except (expat.ExpatError, ValueError):
        return
    for url, licenses in contents[:RULES_MAX]:
        path = pattern_of(url.encode("utf-8", "replace"), allow=False, origin=origin)
        if path is not None:
            answers = _license_answers(licenses)
            uses = ", ".join(f"{purpose}={'yes' if allowed else 'no'}" for purpose, allowed in answers.items())
            said = f"{uses or 'no usage'} for {url}{address and f' in {address}'}"
            yield Pattern(path), statement(Rank.SITE, "license", "RSL", said, answers)


class License(msgspec.Struct):
    """The content of one `<license>`."""

    permits: list[str] | None = None
    """Uses; None if it has no list of them."""
    prohibits: list[str] = []
    conditional: bool = False
    """Whether it requires a payment, a token of a license server, a kind of user or a country."""


def _license_answers(licenses: Sequence[License]) -> dict[str, bool]:
    """Return the combined answers of alternative licenses. Uses that any license prohibits are refused; a list of
    permits refuses uses that no list names, or that are permitted only under conditions.
    """
    lists = [one for one in licenses if one.permits is not None]
    free = _purposes(use for one in lists if not one.conditional for use in one.permits or ())
    answers = {purpose: purpose in free for purpose in _RSL_USES["all"]} if lists else {}
    return answers | dict.fromkeys(_purposes(use for one in licenses for use in one.prohibits), False)


def _purposes(uses: Iterable[str]) -> set[str]:
    return {purpose for use in uses for purpose in _RSL_USES.get(use, ())}


class _Contents:
    """Parses the contents of an RSL document, with their licenses. Refuses a document type, to prevent entities."""

    def __init__(self) -> None:
        self._contents: list[tuple[str, list[License]]] = []
        self._by_server = False
        self._words: list[str] | None = None
        self._parser = expat.ParserCreate(namespace_separator=" ")
        self._parser.buffer_text = True
        self._parser.StartDoctypeDeclHandler = _refuse
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._characters

    def read(self, text: bytes) -> list[tuple[str, list[License]]]:
        """Return the path of each content, and its licenses. Raises ExpatError and ValueError."""
        self._parser.Parse(text, True)
        return self._contents

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        namespace, _, element = name.rpartition(" ")
        if namespace.rstrip("/") != _RSL:
            return
        if element == "content":
            self._contents.append((attributes.get("url", ""), []))
            self._by_server = "server" in attributes
        elif element == "license" and self._contents:
            self._contents[-1][1].append(License(conditional=self._by_server))
        elif element in ("permits", "prohibits", "payment") and self._contents and self._contents[-1][1]:
            one = self._contents[-1][1][-1]
            kind = attributes.get("type", "" if element == "payment" else "usage")
            if element == "payment":
                one.conditional |= kind not in _UNCONDITIONAL
            elif kind in ("user", "geo"):
                one.conditional = True
            elif kind == "usage" and element == "prohibits":
                self._words = one.prohibits
            elif kind == "usage":
                one.permits = one.permits or []
                self._words = one.permits

    def _end(self, _name: str) -> None:
        self._words = None

    def _characters(self, data: str) -> None:
        if self._words is not None:
            self._words += data.replace(",", " ").split()


def _refuse(*_: object) -> None:
    raise ValueError("a license document has no document type")


def _read(data: bytes) -> DocumentRecord | None:
    return of_version(VERSION, _decode, data)


def _key(origin: Url, address: str) -> bytes:
    # The partition goes first, as in every key: the record moves with its site.
    return origin.partition.to_bytes(2, "big") + RECORDS + address.encode()


def _request(url: Url, target: Url) -> Prerequisite:
    return Prerequisite(url, target, owner="usage", subject=target.text)
