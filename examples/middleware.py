"""Three features of visits for `components.middleware`: a token that is renewed, proxies bound to sessions, and a delay
of one path.

    gossamer crawl https://shop.example/ --contact you@example.org \
        --set 'components.middleware=["middleware.py:RenewedToken", "middleware.py:SlowPath"]'
"""

import json
from collections.abc import Callable
from zlib import crc32

import msgspec

from gossamer.model.links import ALLOWED, Prerequisite, RevisitPlan, Verdict, Visit
from gossamer.model.visits import Failure, Reply, Request
from gossamer.ports import Conclusion, VisitMiddleware
from gossamer.state.epoch import Epochs
from gossamer.url.url import Url


class RenewedToken(VisitMiddleware):
    """Sends a bearer token, which `/token` of the same host issues and which a reply with 401 shows to be old.

    The token is durable with the commit, so that a crawl that was killed goes on with it.
    """

    name = "renewed_token"
    reads_body = True

    def __init__(
        self, *, epochs: Epochs, name_url: Callable[[str], Url | None], unpark: Callable[[Url, float], None]
    ) -> None:
        self._epochs = epochs
        self._name_url = name_url
        self._unpark = unpark
        self._sent: dict[int, bytes] = {}
        """Token of each request under way, by the fingerprint of its URL: others may have renewed it meanwhile."""

    def judge(self, url: Url, now: float) -> Verdict:
        token = self._stored(url, b"token")
        if token and token != self._stored(url, b"refused"):
            return ALLOWED
        target = self._name_url(f"{url.origin}/token")
        assert target is not None
        fetch = Prerequisite(url, target, owner=self.name, is_about_origin=False)
        return Verdict(prerequisite=fetch, park=True, reason="its token must be fetched first")

    def answered(
        self, prerequisite: Prerequisite, result: Reply | Failure, body: bytes, now: float
    ) -> Prerequisite | None:
        if isinstance(result, Reply) and result.status == 200:
            self._epochs.put("meta", _key(prerequisite.origin, b"token"), json.loads(body)["token"].encode())
        self._unpark(prerequisite.origin, now)
        return None

    def request(self, url: Url, visit: Visit | None, request: Request, now: float) -> Request:
        if visit is None:  # A robots.txt needs no token.
            return request
        token = self._sent[url.fingerprint] = self._stored(url, b"token")
        header = ("Authorization", f"Bearer {token.decode()}")
        return msgspec.structs.replace(request, headers=(*request.headers, header))

    def settle(self, visit: Visit, reply: Reply, now: float) -> Conclusion | None:
        if reply.status != 401 or visit.attempt > 3:
            return None
        sent = self._sent.get(visit.url.fingerprint, b"")
        is_first = sent == self._stored(visit.url, b"token") and sent != self._stored(visit.url, b"refused")
        if is_first:
            self._epochs.put("meta", _key(visit.url, b"refused"), sent)
        error = "its token was too old"
        # What another page has found out already is no attempt of this one.
        again = RevisitPlan(visit.url, now, visit.attempt + is_first, visit.hops, error)
        return Conclusion("login_required", error, again, was_acted_on=False)

    def release(self, url: Url) -> tuple[Url, ...]:
        self._sent.pop(url.fingerprint, None)
        return ()

    def _stored(self, url: Url, what: bytes) -> bytes:
        return self._epochs.get("meta", _key(url, what)) or b""


class SessionProxies(VisitMiddleware):
    """Sends all requests to one host through the same of several proxies, so that its sessions keep their address."""

    name = "session_proxies"
    proxies = ("http://127.0.0.1:3128", "http://127.0.0.1:3129")

    def route(self, url: Url, request: Request, now: float) -> Request:
        proxy = self.proxies[crc32(url.host.encode()) % len(self.proxies)]
        return msgspec.structs.replace(request, proxy=proxy)


class SlowPath(VisitMiddleware):
    """Leaves a longer delay between the pages below one path. The host's other pages wait with them."""

    name = "slow_path"
    path = "/search/"
    delay_s = 30.0

    def __init__(
        self, *, epochs: Epochs, name_url: Callable[[str], Url | None], unpark: Callable[[Url, float], None]
    ) -> None:
        self._epochs = epochs

    def judge(self, url: Url, now: float) -> Verdict:
        if not url.text.startswith(url.origin + self.path):
            return ALLOWED
        next_at = float(self._epochs.get("meta", _key(url, b"slow")) or 0.0)
        return Verdict(wait_until=next_at, reason=f"{self.path} has a delay") if next_at > now else ALLOWED

    def reserve(self, url: Url, now: float) -> None:
        if url.text.startswith(url.origin + self.path):
            self._epochs.put("meta", _key(url, b"slow"), str(now + self.delay_s).encode())


def _key(url: Url, what: bytes) -> bytes:
    """Return a key of the shard's state for a host; such keys begin with the two bytes of the partition."""
    return url.partition.to_bytes(2) + b"\0own:" + what + url.host.encode()
