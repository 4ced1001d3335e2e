"""Digest: answers to the challenges of digest authentication (RFC 7616)."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections import OrderedDict
from collections.abc import Iterable
from typing import Final

from gossamer.fetch.credentials import origin_of

CHALLENGES_MAX: Final = 1_024
"""Origins whose challenges are kept; for others a request is sent twice."""
_HASHES: Final = {"SHA-512-256": "sha512_256", "SHA-256": "sha256", "MD5": "md5"}
"""Algorithms, the strongest first."""
_PARAMETER = re.compile(r'([a-zA-Z0-9_-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))')
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
        """Name of the algorithm in hashlib; empty if not available, or if the challenge needs an unsupported
        parameter.
        """
        name = _HASHES.get(self.algorithm.upper().removesuffix("-SESS"), "")
        return name if name in hashlib.algorithms_available else ""


class Digests:
    """Keeps the challenge of each origin, so that only its first request gets a 401."""

    def __init__(self) -> None:
        self._challenges: OrderedDict[str, Challenge] = OrderedDict()

    def answer(self, url: str, target: str, login: tuple[str, str], method: str = "GET") -> str:
        """Return the value of Authorization for a request; empty if no challenge is known."""
        challenge = self._challenges.get(origin_of(url))
        if challenge is None:
            return ""
        challenge.answers += 1
        return authorization(challenge, target, login, method, secrets.token_hex(8))

    def challenged(self, url: str, headers: Iterable[tuple[str, str]], *, answered: bool) -> bool:
        """Process the challenges of a 401. True: send the request again; False: the answer to the challenge was
        rejected.
        """
        challenge = best_challenge(value for name, value in headers if name.lower() == "www-authenticate")
        if challenge is None or (answered and not challenge.stale):
            return False
        origin = origin_of(url)
        before = self._challenges.get(origin)
        if before is not None and before.nonce == challenge.nonce:
            challenge.answers = before.answers  # A server may reject a count that it has seen before.
        self._challenges[origin] = challenge
        self._challenges.move_to_end(origin)
        if len(self._challenges) > CHALLENGES_MAX:
            self._challenges.popitem(last=False)
        return True


def best_challenge(values: Iterable[str]) -> Challenge | None:
    """Return the strongest digest challenge of a reply that we can answer."""
    found = []
    for value in values:
        for begin in _SCHEME.finditer(value):
            rest = value[begin.end() :]
            end = _NEXT_SCHEME.search(rest)
            text = rest[: end.start()] if end else rest
            parameters = {
                name.lower(): re.sub(r"\\(.)", r"\1", quoted) if quoted else plain
                for name, quoted, plain in _PARAMETER.findall(text)
            }
            challenge = Challenge(parameters)
            if challenge.nonce and challenge.hash_name and (challenge.qop or "qop" not in parameters):
                found.append(challenge)
    strength = list(_HASHES.values())
    return min(found, key=lambda one: strength.index(one.hash_name), default=None)


def authorization(challenge: Challenge, target: str, login: tuple[str, str], method: str, cnonce: str) -> str:
    """Return the Authorization header that answers a challenge (RFC 7616, section 3.4) for a request target."""
    user, password = login

    def digest(*parts: str) -> str:
        made = hashlib.new(challenge.hash_name, ":".join(parts).encode(), usedforsecurity=False)
        return made.hexdigest()

    count = f"{max(challenge.answers, 1):08x}"
    secret = digest(user, challenge.realm, password)
    if challenge.algorithm.upper().endswith("-SESS"):
        secret = digest(secret, challenge.nonce, cnonce)
    request = digest(method, target)
    middle = (count, cnonce, "auth") if challenge.qop else ()
    response = digest(secret, challenge.nonce, *middle, request)
    fields = [
        ("username", _quoted(user)), ("realm", _quoted(challenge.realm)), ("nonce", _quoted(challenge.nonce)),
        ("uri", _quoted(target)), ("algorithm", challenge.algorithm), ("response", _quoted(response)),
    ]  # fmt: skip
    if challenge.opaque:
        fields.append(("opaque", _quoted(challenge.opaque)))
    if challenge.qop:
        fields += [("qop", "auth"), ("nc", count), ("cnonce", _quoted(cnonce))]
    return "Digest " + ", ".join(f"{name}={value}" for name, value in fields)


def _quoted(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
