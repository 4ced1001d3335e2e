"""Websub: subscriptions to hubs by the W3C recommendation (https://www.w3.org/TR/websub/).

A state machine without I/O: its inputs are links of pages and calls of hubs, its outputs are requests and answers. Each
subscription is a record in the store, which changes in the epoch of the event that changes it.
"""

import hashlib
import hmac
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple
from urllib.parse import urlencode

import msgspec
from msgspec.structs import replace

from gossamer.features.revisit.options import WebsubOptions
from gossamer.model.links import HUB, SELF, Found, Prerequisite, Verdict
from gossamer.model.pages import Visited
from gossamer.model.visits import REPEATS_THE_BODY, Failure, Reply, Request
from gossamer.ports import VisitMiddleware
from gossamer.state.epoch import Epochs
from gossamer.state.schema import PARTITIONED, SUBSCRIBED
from gossamer.url.url import NameUrl, Url

METHODS = frozenset(("sha1", "sha256", "sha384", "sha512"))


class Check:
    """Verifies the signature of a body piece by piece, in constant memory."""

    def __init__(self, secret: str, header: str) -> None:
        """`header` is the value of X-Hub-Signature: `method=hex`. Without a secret every body is accepted."""
        method, _, claimed = header.strip().partition("=")
        method = method.strip().lower()
        self._is_needed = bool(secret)
        self._claimed = claimed.strip().lower().encode("ascii", "replace")
        self._digest = hmac.new(secret.encode(), digestmod=getattr(hashlib, method)) if method in METHODS else None

    def update(self, piece: bytes) -> None:
        """Process the next piece."""
        if self._digest is not None and self._is_needed:
            self._digest.update(piece)

    def is_right(self) -> bool:
        """Return whether the signature is right, by a comparison in constant time."""
        if not self._is_needed:
            return True
        return self._digest is not None and hmac.compare_digest(self._digest.hexdigest().encode(), self._claimed)


TOKEN_BYTES = 24
SECRET_BYTES = 32
"""Random bytes in a callback's address, and in a secret (section 5.1 allows 200 characters)."""
HUBS_MAX = 8
REDIRECTS_MAX = 3
LEASE_S_MIN = 60
LEASE_S_MAX = 10 * 365 * 86_400
REASON_CHARACTERS_MAX = 200
ANSWER_BYTES_MAX = 65_536
"""Bytes that are read of a hub's answer, which says why it refuses."""
SITE_SHARE = 0.1
SITE_SUBSCRIPTIONS_MIN = 10
"""Share of `websub.subscriptions_max` that one site may take, and the number that each may have in any case."""
ROBOTS_S = 1.0
"""Pause while the robots.txt of a hub is read."""
FORM = (("Content-Type", "application/x-www-form-urlencoded"),)


class Subscription(msgspec.Struct):
    """One topic at one hub."""

    token: str
    """Last part of the callback's address."""
    topic: str
    page: str
    """URL to fetch on a notification."""
    hubs: list[str]
    hub: int = 0
    """Index of the hub in use; the next one follows after a refusal."""
    secret: str = ""
    pending: str = ""
    """`subscribe` or `unsubscribe` while the hub has not verified that request."""
    asked_at: float = 0.0
    next_at: float = 0.0
    """When the hub gets the next request."""
    lease_until: float = 0.0
    """End of the lease; 0 before the first verification."""
    failures: int = 0
    error: str = ""
    """The hub's last error."""
    denied: bool = False
    pings: int = 0
    pinged_at: float = 0.0
    gathered_until: float = 0.0
    """End of the window in which notifications share visits (`websub.gather_s`)."""
    digest: bytes = b""
    """Digest of the content that opened the window; empty without content."""


class Due(NamedTuple):
    """Pages to visit because of a notification, and when. No pages if the visit for an earlier one is enough."""

    pages: list[Url]
    at: float


decode_subscription = msgspec.msgpack.Decoder(Subscription).decode
"""Returns a subscription from its stored form."""


class Subscriptions(VisitMiddleware):
    """Subscriptions to hubs (WebSub).

    A callback's address is in the store before it is sent to the hub: the caller of `due` commits before it sends. Only
    our own requests are confirmed. A subscription that a crash interrupts is requested again.
    """

    name = "websub"

    def __init__(
        self,
        epochs: Epochs,
        options: WebsubOptions,
        callback_url: str,
        name: NameUrl,
        judge: Callable[[Url, float], Verdict],
        unguessable: Callable[[int], str],
    ) -> None:
        """`callback_url` is our address for hubs; `judge` says whether a hub may be asked, which pages name as they
        like: for its operator only its robots.txt does.
        """
        self._epochs = epochs
        self._options = options
        self._callback_url = callback_url
        self._name = name
        self._judge = judge
        self._unguessable = unguessable
        self._by_token: dict[str, Subscription] = {}
        self._by_topic: dict[str, Subscription] = {}
        self._of_site: Counter[str] = Counter()
        self._led_to: dict[str, str] = {}
        """By token: where a hub redirected, whose robots.txt must be read first."""
        for key, value in list(epochs.scan(SUBSCRIBED.family, *PARTITIONED)):
            if key[2:3] not in SUBSCRIBED.marks:
                continue
            one = decode_subscription(value)
            if one.pending:  # The request, or its answer, may have been lost with a process.
                one.next_at = 0.0
            self._keep(one)

    def __len__(self) -> int:
        return len(self._by_token)

    # ---- what pages say

    def concluded(self, visited: Visited, now: float) -> None:
        if visited.findings is not None:
            self.subscribe(visited.url, visited.findings.links, now)

    def subscribe(self, page: Url, links: Sequence[Found], now: float) -> None:
        """Process a page's links of type `hub` and `self`: subscribe, or change the hub.

        A page may declare only topics of its own host; without one, the page itself is the topic (section 4).
        """
        hubs = [link.url for link in links if link.link_type == HUB][:HUBS_MAX]
        if not hubs:
            return
        topic = next((link.url for link in links if link.link_type == SELF), page.text)
        named = self._name(topic)
        if named is None or named.host != page.host:
            return
        hubs = [hub for hub in hubs if hub.startswith(("http://", "https://")) and self._name(hub) is not None]
        known = self._by_topic.get(topic)
        if known is not None:
            if hubs and known.hubs != hubs:
                known.hubs = hubs
                known.hub = 0
                known.next_at = now
                known.denied = False
                self._save(known)
        elif hubs and self._has_room(page.site):
            one = Subscription(self._unguessable(TOKEN_BYTES), topic, page.text, hubs, next_at=now)
            self._keep(one)
            self._save(one)

    def _keep(self, one: Subscription) -> None:
        self._by_token[one.token] = self._by_topic[one.topic] = one
        self._of_site[self._site(one)] += 1

    def _has_room(self, site: str) -> bool:
        """Return whether a site may have one more subscription; drop one that no hub has ever verified if that makes
        room. A site that names hubs as it likes must not take the places of others.
        """
        most = self._options.subscriptions_max
        is_site_full = self._of_site[site] >= max(SITE_SUBSCRIPTIONS_MIN, SITE_SHARE * most)
        if len(self) < most and not is_site_full:
            return True
        unverified = (
            one
            for one in self._by_token.values()
            if one.failures and not one.lease_until and (not is_site_full or self._site(one) == site)
        )
        worst = max(unverified, key=lambda one: one.failures, default=None)
        if worst is not None:
            self._forget(worst)
        return worst is not None

    # ---- asking hubs

    def due(self, now: float) -> list[Prerequisite]:
        """Return the requests to hubs that are due, and note them as sent. Commit before sending them."""
        asked = [self._ask(one, now) for one in list(self._by_token.values()) if one.next_at <= now]
        # A robots.txt is fetched once for all subscriptions of its host.
        return list({(one.url, one.subject): one for one in asked if one is not None}.values())

    def next_at(self) -> float | None:
        """Return when `due` has the next request."""
        return min((one.next_at for one in self._by_token.values()), default=None)

    def fetch(self, prerequisite: Prerequisite, request: Request, now: float) -> Request:
        return replace(request, headers=FORM, method="POST", body=prerequisite.form, body_bytes_max=ANSWER_BYTES_MAX)

    def answered(
        self, prerequisite: Prerequisite, result: Reply | Failure, body: bytes, now: float
    ) -> Prerequisite | None:
        """Handle a hub's answer to a request: 202 and other 2xx mean that it will verify (section 5.1.1)."""
        one = self._by_token.get(prerequisite.subject)
        if one is None:
            return None
        # By these alone a hub may redirect a subscriber (section 5.1).
        if isinstance(result, Reply) and result.status in REPEATS_THE_BODY and prerequisite.hops < REDIRECTS_MAX:
            target = self._name(result.header("location") or "")
            verdict = self._judge(target, now) if target is not None else None
            if target is not None and verdict is not None and verdict.allowed:
                return replace(prerequisite, origin=target, url=target, hops=prerequisite.hops + 1)
            if target is not None and verdict is not None and verdict.prerequisite is not None:
                self._led_to[one.token] = target.text
                one.next_at = now
                return None
        if isinstance(result, Reply) and 200 <= result.status < 300:
            return None  # It may have been verified before this answer came.
        if one.pending:
            self._note_refusal(one, result.error if isinstance(result, Failure) else f"HTTP {result.status}", now)
        return None

    def leave(self, now: float) -> int:
        """Begin to end all active subscriptions; return their number."""
        standing = [one for one in self._by_token.values() if one.lease_until > now]
        for one in standing:
            one.pending = "unsubscribe"
            one.next_at = now
            self._save(one)
        return len(standing)

    @property
    def leaving(self) -> int:
        """Return how many subscriptions wait for a hub to confirm their end."""
        return sum(one.pending == "unsubscribe" for one in self._by_token.values())

    # ---- what callers say

    def verify(self, token: str, mode: str, topic: str, lease_s: str, now: float) -> bool:
        """Answer a hub's verification of a request (section 5.3); True: it is ours, so echo the challenge."""
        one = self._by_token.get(token)
        if one is None or one.topic != topic or mode != one.pending:
            return False
        if mode == "unsubscribe":
            self._forget(one)
            return True
        lease = int(lease_s[:12]) if lease_s.isascii() and lease_s.isdigit() else self._options.lease_s
        lease = max(LEASE_S_MIN, min(lease, LEASE_S_MAX)) if lease else self._options.lease_s
        one.pending = ""
        one.failures = 0
        one.error = ""
        one.denied = False
        one.lease_until = now + lease
        one.next_at = now + lease * self._options.renew_share
        self._save(one)
        return True

    def deny(self, token: str, topic: str, reason: str, now: float) -> bool:
        """Handle a hub's denial of a subscription, also of an active one (section 5.2); False: no such subscription."""
        one = self._by_token.get(token)
        if one is None or one.topic != topic:
            return False
        one.denied = True
        one.lease_until = 0.0
        self._note_refusal(one, f"denied: {reason}"[:REASON_CHARACTERS_MAX], now)
        one.next_at = now + self._options.retry_s_max
        self._save(one)
        return True

    def get(self, token: str) -> Subscription | None:
        """Return the subscription of a callback's address, if a hub has ever verified it."""
        one = self._by_token.get(token)
        return one if one is not None and one.lease_until else None

    def note_ping(self, one: Subscription, digest: bytes, now: float) -> Due:
        """Note a hub's notification of a change. `digest` is that of its content; empty without content.

        The first notification makes the pages due at once and opens a window. A repeat of its content within the window
        has no effect. Any other notification makes the pages due at the window's end, so a burst costs two visits.
        """
        one.pings += 1
        one.pinged_at = now
        at = now
        if now < one.gathered_until <= now + self._options.gather_s:
            at = one.gathered_until
        else:
            one.gathered_until = now + self._options.gather_s
            one.digest = digest
        self._save(one)
        if at > now and digest and digest == one.digest:
            return Due([], now)
        urls = [self._name(text) for text in dict.fromkeys((one.page, one.topic))]
        return Due([url for url in urls if url is not None], at)

    def all(self) -> list[Subscription]:
        """Return all subscriptions, for display. They include secrets, which must not be shown."""
        return list(self._by_token.values())

    # ---- inside

    def _ask(self, one: Subscription, now: float) -> Prerequisite | None:
        hub = self._led_to.get(one.token) or one.hubs[one.hub % len(one.hubs)]
        url = self._name(hub)
        verdict = self._judge(url, now) if url is not None else Verdict(reason="its hub has no valid address")
        if verdict.prerequisite is not None or verdict.wait_until > now:
            one.next_at = max(now + ROBOTS_S, verdict.wait_until)
            return verdict.prerequisite
        self._led_to.pop(one.token, None)
        if url is None or not verdict.allowed:
            self._note_refusal(one, f"its hub may not be contacted: {verdict.reason}", now)
            return None
        one.failures += bool(one.pending and one.asked_at)  # The last request was never verified.
        if one.pending != "unsubscribe":
            one.pending = "subscribe"
            if not one.secret and self._signs(hub):
                one.secret = self._unguessable(SECRET_BYTES)
        one.asked_at = now
        one.next_at = now + self._options.answer_s_max
        self._save(one)
        fields = {
            "hub.callback": f"{self._callback_url}/websub/{one.token}", "hub.mode": one.pending, "hub.topic": one.topic
        }  # fmt: skip
        if one.pending == "subscribe":
            fields["hub.lease_seconds"] = str(self._options.lease_s)
            if one.secret and self._signs(hub):
                fields["hub.secret"] = one.secret
        form = urlencode(fields).encode()
        return Prerequisite(url, url, owner=self.name, subject=one.token, form=form, is_about_origin=False)

    def _signs(self, hub: str) -> bool:
        wanted = self._options.secret
        return wanted == "always" or (wanted == "https" and hub.startswith("https://"))

    def _note_refusal(self, one: Subscription, error: str, now: float) -> None:
        one.failures += 1
        one.error = error
        one.hub = (one.hub + 1) % len(one.hubs)
        pause_s = self._options.retry_s_first * 2.0 ** min(one.failures - 1, 30)
        one.next_at = now + min(pause_s, self._options.retry_s_max)
        if one.pending == "unsubscribe":
            self._forget(one)  # Its lease expires by itself.
        else:
            one.pending = ""
            self._save(one)

    def _save(self, one: Subscription) -> None:
        if one.token in self._by_token:
            self._epochs.put("websub", self._key(one), msgspec.msgpack.encode(one))

    def _forget(self, one: Subscription) -> None:
        self._epochs.delete("websub", self._key(one))
        self._by_token.pop(one.token, None)
        self._by_topic.pop(one.topic, None)
        self._of_site[self._site(one)] -= 1

    def _site(self, one: Subscription) -> str:
        page = self._name(one.page)
        return page.site if page is not None else ""

    def _key(self, one: Subscription) -> bytes:
        page = self._name(one.page)
        assert page is not None, f"{one.page} was named before"
        return page.partition.to_bytes(2) + one.token.encode()
