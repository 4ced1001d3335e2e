"""Digest: answers to the challenges of digest authentication (RFC 7616)."""

import asyncio
import hashlib
import re
import secrets
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from itertools import islice
from typing import Final

from gossamer.model.visits import Reply
from gossamer.stages.fetch.credentials import origin_of
from gossamer.world.loop import wait_at_most

CHALLENGES_MAX: Final = 1_024
"""Origins whose challenges are kept; for others a request is sent twice."""
UNAUTHORIZED: Final = 401
TURN_S_MAX: Final = 10.0
"""Longest wait for a turn, where each nonce is taken once."""
OF_REPLY_MAX: Final = 16
"""Challenges of one header that are read."""
_HASHES: Final = {"SHA-512-256": "sha512_256", "SHA-256": "sha256", "MD5": "md5"}
"""Algorithms, the strongest first."""
_PARAMETER = re.compile(r'(?<![a-zA-Z0-9_-])([a-zA-Z0-9_-]++)\s*+=\s*+(?:"((?:[^"\\]|\\.)*)"|([^\s,"]++))')
_SCHEME = re.compile(r"(?:^|,)\s*digest\s+", re.IGNORECASE)
_NEXT_SCHEME = re.compile(r",\s*[a-zA-Z0-9-]+\s+[a-zA-Z0-9_-]+\s*=")


class Challenge:
    """A server's challenge, and how often it was answered."""

    __slots__ = ("algorithm", "answers", "nonce", "opaque", "qop", "realm", "stale")

    def __init__(self, parameters: dict[str, str]) -> None:
        self.realm = parameters.get("realm", "")
        self.nonce = parameters.get("nonce", "")
        self.opaque = parameters.get("opaque", "")
        self.algorithm = parameters.get("algorithm", "MD5")
        self.qop = "auth" in [one.strip().lower() for one in parameters.get("qop", "").split(",")]
        self.stale = parameters.get("stale", "").lower() == "true"
        self.answers = 0

    @property
    def hash_name(self) -> str:
        """Name of the algorithm in hashlib; empty if it is not available, or a needed parameter is not supported."""
        name = _HASHES.get(self.algorithm.upper().removesuffix("-SESS"), "")
        return name if name in hashlib.algorithms_available else ""


class Digests:
    """Keeps the challenge of each origin, so that only its first request gets a 401."""

    def __init__(self) -> None:
        self._challenges: OrderedDict[str, Challenge] = OrderedDict()
        self._turns: OrderedDict[str, asyncio.Lock] = OrderedDict()
        """Of origins that seem to take each nonce once: requests there go one by one, so that each has the newest."""
        self._running: Counter[str] = Counter()
        self._overlapped: set[str] = set()
        """Origins with requests under way that were not alone: the nonce of one may have been replaced by another."""
        self._doubtful: set[str] = set()
        """Of the origins with challenges, those whose nonce may not be the newest: replies may overtake each other."""

    @asynccontextmanager
    async def turn(self, url: str) -> AsyncIterator[None]:
        """Wait until a request may go out, for `TURN_S_MAX` at most, and pass the turn on after it."""
        origin = origin_of(url)
        lock = self._turns.get(origin)
        has_turn = lock is not None and await wait_at_most(TURN_S_MAX, lock.acquire())
        if self._running[origin]:
            self._overlapped.add(origin)
        self._running[origin] += 1
        try:
            yield
        finally:
            self._running[origin] -= 1
            if not self._running[origin]:
                del self._running[origin]
                self._overlapped.discard(origin)
            if lock is not None and has_turn:
                lock.release()

    def answer(self, url: str, target: str, login: tuple[str, str], method: str = "GET") -> str:
        """Return the value of Authorization for a request; empty if no challenge is known."""
        challenge = self._challenges.get(origin_of(url))
        if challenge is None:
            return ""
        challenge.answers += 1
        return authorization(challenge, target, login, method, secrets.token_hex(8))

    def handle_reply(self, url: str, reply: Reply, answer: str) -> bool:
        """Process a reply to a request with this `answer`; return whether its challenge can be answered next."""
        if reply.status == UNAUTHORIZED:
            return self.handle_challenge(url, reply.headers, answer)
        origin = origin_of(url)
        if (challenge := self._challenges.get(origin)) is not None and answer:
            if challenge.answers > 1 and _nonce_in(challenge, answer):
                self._turns.pop(origin, None)
            # RFC 7616, section 3.5
            following = _parameters(reply.header("authentication-info") or "").get("nextnonce", "")
            if following not in ("", challenge.nonce):
                challenge.nonce = following
                challenge.answers = 0
                self._keep(origin, challenge)
        return False

    def handle_challenge(self, url: str, headers: Iterable[tuple[str, str]], answer: str = "") -> bool:
        """Process the challenges of a 401 to a request with this `answer`. True: send the request again; False: its
        answer was rejected, though its nonce was the newest, and no other request was under way.
        """
        challenge = best_challenge(value for name, value in headers if name.lower() == "www-authenticate")
        if challenge is None:
            return False
        origin = origin_of(url)
        before = self._challenges.get(origin)
        is_rejected = False
        if answer and before is not None:
            is_sure = origin not in self._overlapped and origin not in self._doubtful
            is_first = before.answers == 1 and _nonce_in(before, answer) and is_sure
            is_rejected = not challenge.stale and (is_first or before.nonce == challenge.nonce)
            if not is_first and not is_rejected:
                self._turns.setdefault(origin, asyncio.Lock())
                if len(self._turns) > CHALLENGES_MAX:
                    self._turns.popitem(last=False)
        if before is not None and before.nonce == challenge.nonce:
            challenge.answers = before.answers  # A server may reject a count that it has seen before.
        self._keep(origin, challenge)
        return not is_rejected

    def _keep(self, origin: str, challenge: Challenge) -> None:
        self._challenges[origin] = challenge
        self._challenges.move_to_end(origin)
        if origin in self._overlapped:
            self._doubtful.add(origin)
        else:
            self._doubtful.discard(origin)
        if len(self._challenges) > CHALLENGES_MAX:
            left, _ = self._challenges.popitem(last=False)
            self._doubtful.discard(left)


def _nonce_in(challenge: Challenge, answer: str) -> bool:
    return f"nonce={_quote(challenge.nonce)}," in answer


def _parameters(text: str) -> dict[str, str]:
    return {
        name.lower(): re.sub(r"\\(.)", r"\1", quoted) if quoted else plain
        for name, quoted, plain in _PARAMETER.findall(text)
    }


def best_challenge(values: Iterable[str]) -> Challenge | None:
    """Return the strongest digest challenge of a reply that we can answer."""
    found = []
    for value in values:
        for begin in islice(_SCHEME.finditer(value), OF_REPLY_MAX):
            rest = value[begin.end() :]
            end = _NEXT_SCHEME.search(rest)
            text = rest[: end.start()] if end else rest
            parameters = _parameters(text)
            challenge = Challenge(parameters)
            if challenge.nonce and challenge.hash_name and (challenge.qop or "qop" not in parameters):
                found.append(challenge)
    strength = list(_HASHES.values())
    return min(found, key=lambda one: strength.index(one.hash_name), default=None)


def authorization(challenge: Challenge, target: str, login: tuple[str, str], method: str, cnonce: str) -> str:
    """Return the Authorization header that answers a challenge (RFC 7616, section 3.4) for a request target."""
    user, password = login

    def digest(*parts: str) -> str:
        return hashlib.new(challenge.hash_name, ":".join(parts).encode(), usedforsecurity=False).hexdigest()

    count = f"{max(challenge.answers, 1):08x}"
    secret = digest(user, challenge.realm, password)
    if challenge.algorithm.upper().endswith("-SESS"):
        secret = digest(secret, challenge.nonce, cnonce)
    request = digest(method, target)
    middle = (count, cnonce, "auth") if challenge.qop else ()
    response = digest(secret, challenge.nonce, *middle, request)
    fields = [
        ("username", _quote(user)), ("realm", _quote(challenge.realm)), ("nonce", _quote(challenge.nonce)),
        ("uri", _quote(target)), ("algorithm", challenge.algorithm), ("response", _quote(response)),
    ]  # fmt: skip
    if challenge.opaque:
        fields.append(("opaque", _quote(challenge.opaque)))
    if challenge.qop:
        fields += [("qop", "auth"), ("nc", count), ("cnonce", _quote(cnonce))]
    return "Digest " + ", ".join(f"{name}={value}" for name, value in fields)


def _quote(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
