"""Hub: a WebSub hub that follows the recommendation step by step (https://www.w3.org/TR/websub/), for tests.

5.1    takes requests to subscribe and to unsubscribe: 202, or 400 for what it cannot understand
5.1.1  redirects them, where a test says so
5.2    denies topics that it does not serve
5.3    verifies the subscriber's intent by a challenge, and takes nothing but 2xx and the challenge for a yes
6      takes a publisher's word (`hub.mode=publish`, as most hubs have it), and fetches the topic
7      distributes the topic's content, with Link headers; 410 ends a subscription, other refusals are repeated
7.1    signs it for subscribers that gave a secret
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
import time
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import NamedTuple, Self
from urllib.parse import parse_qsl, urlencode, urlsplit

REQUEST_S_MAX = 60.0
LEASE_S_MAX, LEASE_S_DEFAULT = 864_000, 86_400
REPEATS_MAX = 3


class Subscriber(NamedTuple):
    """One verified subscription."""

    callback: str
    secret: str
    lease_until: float


class Hub:
    """Serves on loopback, in threads, while it is entered. `log` tells what happened, in order."""

    def __init__(self, topics: tuple[str, ...] | None = None, port: int = 0, method: str = "sha256") -> None:
        """`topics` are those that it serves; None: all. `method` signs: sha1, sha256, sha384 or sha512."""
        self.topics = topics
        self.method = method
        self.lease_s_max = LEASE_S_MAX
        self.redirect_to = ""
        """Where requests are sent instead, by 308."""
        self.subscribers: dict[tuple[str, str], Subscriber] = {}
        """By topic and callback."""
        self.log: list[tuple[str, str]] = []
        """What was done, and to which callback or topic."""
        self.requests: list[dict[str, str]] = []
        """What was asked, field by field."""
        hub = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers.get("content-length") or 0)
                status, text = hub._asked(self.headers.get("content-type") or "", self.rfile.read(length))
                self.send_response(status)
                if status in (307, 308):
                    self.send_header("Location", hub.redirect_to)
                self.end_headers()
                self.wfile.write(text.encode())

            def do_GET(self) -> None:
                """It has no robots.txt, and no other pages."""
                self.send_response(404)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Keep silent."""

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/"
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> Self:
        """Serve."""
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop."""
        self._server.shutdown()
        self._server.server_close()
        for thread in self._threads:
            thread.join(REQUEST_S_MAX)

    def publish(self, topic: str) -> list[int]:
        """Fetch a topic and distribute it (section 7); return what the subscribers answered."""
        with urllib.request.urlopen(topic, timeout=REQUEST_S_MAX) as reply:
            content, kind = reply.read(), reply.headers.get("Content-Type", "application/octet-stream")
        now = time.time()
        answers = []
        for (one, callback), subscriber in list(self.subscribers.items()):
            if one != topic:
                continue
            if subscriber.lease_until < now:
                del self.subscribers[one, callback]
                continue
            status = self._distribute(topic, subscriber, content, kind)
            if status == 410:
                del self.subscribers[one, callback]
            answers.append(status)
        return answers

    def deny(self, topic: str, reason: str = "") -> None:
        """End a topic's subscriptions (section 5.2)."""
        for one, callback in [key for key in self.subscribers if key[0] == topic]:
            del self.subscribers[one, callback]
            self._denied(topic, callback, reason)

    def _asked(self, content_type: str, body: bytes) -> tuple[int, str]:
        """Sections 5.1 and 6."""
        if content_type.partition(";")[0].strip() != "application/x-www-form-urlencoded":
            return 400, "a form is expected\n"
        fields = dict(parse_qsl(body.decode("utf-8", "replace")))
        self.requests.append(fields)
        mode, topic, callback = (fields.get(f"hub.{name}", "") for name in ("mode", "topic", "callback"))
        if mode == "publish":
            for url in filter(None, (topic, fields.get("hub.url", ""))):
                self._begin(self._published, url)
            return 202, ""
        if self.redirect_to:
            return 308, ""
        if mode not in ("subscribe", "unsubscribe") or not topic or urlsplit(callback).scheme not in ("http", "https"):
            return 400, "hub.mode, hub.topic and hub.callback are expected\n"
        if len(fields.get("hub.secret", "").encode()) >= 200:
            return 400, "hub.secret is too long\n"
        self._begin(self._verify, mode, topic, callback, fields)
        return 202, ""

    def _verify(self, mode: str, topic: str, callback: str, fields: dict[str, str]) -> None:
        """Section 5.3, and 5.2 for topics that are not served."""
        if mode == "subscribe" and self.topics is not None and topic not in self.topics:
            self._denied(topic, callback, "not served here")
            return
        lease_s = min(int(fields.get("hub.lease_seconds") or LEASE_S_DEFAULT), self.lease_s_max)
        challenge = secrets.token_urlsafe(24)
        query = {"hub.mode": mode, "hub.topic": topic, "hub.challenge": challenge}
        if mode == "subscribe":
            query["hub.lease_seconds"] = str(lease_s)
        status, text = self._get(callback, query)
        if not 200 <= status < 300 or text != challenge:
            self.log.append(("not verified", callback))
        elif mode == "subscribe":
            self.subscribers[topic, callback] = Subscriber(
                callback, fields.get("hub.secret", ""), time.time() + lease_s
            )
            self.log.append(("subscribed", callback))
        else:
            self.subscribers.pop((topic, callback), None)
            self.log.append(("unsubscribed", callback))

    def _denied(self, topic: str, callback: str, reason: str) -> None:
        self._get(callback, {"hub.mode": "denied", "hub.topic": topic, "hub.reason": reason})
        self.log.append(("denied", callback))

    def _published(self, topic: str) -> None:
        self.log.append(("published", topic))
        self.publish(topic)

    def _distribute(self, topic: str, subscriber: Subscriber, content: bytes, kind: str) -> int:
        """Sections 7 and 7.1."""
        headers = {"Content-Type": kind, "Link": f'<{self.url}>; rel="hub", <{topic}>; rel="self"'}
        if subscriber.secret:
            digest = hmac.new(subscriber.secret.encode(), content, getattr(hashlib, self.method)).hexdigest()
            headers["X-Hub-Signature"] = f"{self.method}={digest}"
        status = 0
        for _ in range(REPEATS_MAX):
            request = urllib.request.Request(subscriber.callback, content, headers)
            status, _ = _answer(request)
            self.log.append((f"distributed {status}", subscriber.callback))
            if 200 <= status < 300 or status == 410:
                break
        return status

    def _get(self, callback: str, query: dict[str, str]) -> tuple[int, str]:
        # The callback may have a query of its own, which stays.
        joint = "&" if urlsplit(callback).query else "?"
        return _answer(urllib.request.Request(callback + joint + urlencode(query)))

    def _begin(self, work: object, *arguments: object) -> None:
        assert callable(work)
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()


def _answer(request: urllib.request.Request) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(request, timeout=REQUEST_S_MAX) as reply:
            return reply.status, reply.read(65_536).decode("utf-8", "replace")
    except urllib.error.HTTPError as refused:
        return refused.code, refused.read(65_536).decode("utf-8", "replace")
    except OSError:
        return 0, ""
