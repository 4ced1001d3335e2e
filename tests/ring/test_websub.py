"""WebSub end to end: a publisher, a hub and a crawl on the command line, which dies in between."""

from __future__ import annotations

import json
import socket
import stat
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.answering import free_port
from tests.hub import Hub
from tests.ring.crawls import OWN, CommandLine, command_line, until
from tests.ring.hostile import Answer, HostileServer, whole


class Publisher(HostileServer):
    """A site with a feed that names a hub, and says when it was asked for what."""

    def __init__(self, hub: Hub) -> None:
        super().__init__({})
        self.topic = f"{self.root}feed.atom"
        self.number = 0
        self.hub = hub
        self.answers["/"] = whole(
            b"<!doctype html><title>T</title><link rel=alternate type=application/atom+xml href=/feed.atom>"
        )
        self.write()

    def write(self) -> str:
        """Have news, and return their address."""
        self.number += 1
        entries = "".join(
            f"<entry><updated>2026-11-0{n}T00:00:00Z</updated><link href='{self.root}news-{n}.html'/></entry>"
            for n in range(1, self.number + 1)
        )
        self.answers["/feed.atom"] = whole(
            f"<feed xmlns='http://www.w3.org/2005/Atom'><link rel='hub' href='{self.hub.url}'/>"
            f"<link rel='self' href='{self.topic}'/>{entries}</feed>".encode(),
            "application/atom+xml",
        )
        path = f"/news-{self.number}.html"
        self.answers[path] = page(f"news {self.number}")
        return path


def page(text: str) -> Answer:
    return whole(f"<!doctype html><title>{text}</title><p>{text}".encode())


@pytest.fixture
def hub() -> Iterator[Hub]:
    with Hub() as running:
        yield running


@pytest.fixture
def publisher(hub: Hub) -> Iterator[Publisher]:
    with Publisher(hub) as running:
        yield running


@contextmanager
def crawling(publisher: Publisher, directory: Path, *sets: str) -> Iterator[tuple[CommandLine, str]]:
    """A continuous crawl with its console, and where that is."""
    port = free_port()
    root = f"http://127.0.0.1:{port}"
    with command_line(directory) as running:
        running.crawl(
            (publisher.root,),
            *OWN,
            f"console.public_url='{root}'",
            "discovery.feed_s_min=3600",
            "discovery.feed_s_max=3600",
            "websub.secret='always'",
            *sets,
            mode="continuous",
            serve=str(port),
        )
        yield running, root


def ask(url: str, body: bytes | None = None, headers: dict[str, str] | None = None) -> int:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, headers or {}), timeout=60) as reply:
            return int(reply.status)
    except urllib.error.HTTPError as refused:
        refused.close()
        return refused.code


@pytest.mark.promise(
    "Continuous crawls", "A WebSub notification that is answered with 2xx leads to a visit, also after kills."
)
@pytest.mark.heavy
def test_from_a_publishers_word_to_the_fetch_of_its_news_take_seconds_also_after_a_death(
    publisher: Publisher, hub: Hub, tmp_path: Path
) -> None:
    with crawling(publisher, tmp_path / "c") as (running, root):
        until(lambda: hub.subscribers)
        assert publisher.counts["/feed.atom"] == 1
        asked = hub.requests[0]
        assert asked["hub.topic"] == publisher.topic
        assert asked["hub.callback"].startswith(f"{root}/websub/")
        assert len(asked["hub.secret"]) > 40
        assert stat.S_IMODE((tmp_path / "c/state").stat().st_mode) == 0o700, "it holds the secret"
        news = publisher.write()
        ping(hub, publisher)
        until(lambda: publisher.counts[news])
        assert publisher.counts["/feed.atom"] == 3  # Once by the hub, once by us.

        running.until_commit()
        running.kill_child()
        news = publisher.write()
        until(lambda: status(root))
        ping(hub, publisher)
        until(lambda: publisher.counts[news])
        assert len(hub.requests) == 3, "a subscription that stands is not asked for again"
        assert len({callback for _, callback in hub.subscribers}) == 1
        told = status(root)
        assert told["state"] == "running"
        assert told["subscriptions"][0]["pings"] == 2  # type: ignore[index]


def ping(hub: Hub, publisher: Publisher) -> None:
    """Say what a publisher says (section 6)."""
    body = f"hub.mode=publish&hub.url={publisher.topic}".encode()
    assert ask(hub.url, body, {"Content-Type": "application/x-www-form-urlencoded"}) == 202


def status(root: str) -> dict[str, object]:
    try:
        with urllib.request.urlopen(f"{root}/api/status", timeout=60) as reply:
            return dict(json.loads(reply.read()))
    except OSError:
        return {}


@pytest.mark.heavy
def test_a_stop_leaves_the_hub_where_that_is_wished_and_a_stopped_crawl_finds_its_subscription_again(
    publisher: Publisher, hub: Hub, tmp_path: Path
) -> None:
    directory = tmp_path / "c"
    with crawling(publisher, directory) as (running, _):
        until(lambda: hub.subscribers)
        running.until_commit()
        assert running.process is not None
        running.process.terminate()
        assert running.wait() == 130
    assert hub.subscribers
    requests = len(hub.requests)
    with command_line(directory) as again:
        again.start("resume", str(directory), "--quiet", "--set", "websub.unsubscribe=true")
        again.until_commit()
        news = publisher.write()
        until(lambda: hub.publish(publisher.topic) == [204] or time.sleep(0.05))
        until(lambda: publisher.counts[news])
        assert len(hub.requests) == requests
        assert again.process is not None
        again.process.terminate()
        assert again.wait() == 130
    assert not hub.subscribers
    assert hub.log[-1][0] == "unsubscribed"


@pytest.mark.promise("Politeness", "Hubs that send bad, slow or too many notifications change nothing.")
def test_hostile_callers_do_no_harm(publisher: Publisher, hub: Hub, tmp_path: Path) -> None:
    sets = ("console.request_s_max=1.0", "console.connections_max=12", "websub.body_bytes_max=200000")
    with crawling(publisher, tmp_path / "c", *sets) as (_, root):
        until(lambda: hub.subscribers)
        (subscriber,) = hub.subscribers.values()
        hook = subscriber.callback
        topic = publisher.topic
        fetches = publisher.counts["/feed.atom"]
        wrong = {"X-Hub-Signature": "sha256=" + 64 * "0"}
        # Wrong signatures, unknown methods, none at all: taken, and ignored.
        for headers in (wrong, {"X-Hub-Signature": "md5=0"}, {"X-Hub-Signature": "=é"}, {}):
            assert ask(hook, b"news", headers) == 204
        # Intents that are not ours.
        challenge = "hub.challenge=x&hub.lease_seconds=99"
        for mode, what in (("subscribe", topic), ("unsubscribe", topic), ("subscribe", f"{topic}x"), ("", "")):
            assert ask(f"{hook}?hub.mode={mode}&hub.topic={what}&{challenge}") == 404
        assert ask(f"{hook}?hub.mode=denied&hub.topic={topic}x") == 404
        assert ask(f"{root}/websub/guessed?hub.mode=subscribe&hub.topic={topic}&{challenge}") == 404
        assert ask(f"{root}/websub/guessed", b"news") == 410
        assert ask(hook, bytes(200_001)) == 413
        assert ask(f"{root}/websub/../api/status", b"") in (404, 405)
        assert ask(f"{root}/api/status", headers={"Host": "evil.example"}) == 421
        # Slow ones: heads and bodies that never end; more connections than there is room for.
        slow = [socket.create_connection(("127.0.0.1", int(root.rpartition(":")[2]))) for _ in range(40)]
        for number, one in enumerate(slow):
            head = b"POST " + hook.removeprefix(root).encode() + b" HTTP/1.1\r\nHost: x\r\n"
            try:
                one.sendall(head + (b"Content-Length: 99\r\n\r\nx" if number % 2 else b"X-Slow: "))
            except ConnectionError:
                assert number >= 12
        until(lambda: status(root))
        assert all(ended(one) for one in slow)
        # And all that brought no fetch; the right one still does.
        assert publisher.counts["/feed.atom"] == fetches
        news = publisher.write()
        assert hub.publish(topic) == [204]
        until(lambda: publisher.counts[news])
    assert (tmp_path / "c/logs/critical.log").read_text() == ""


def ended(connection: socket.socket) -> bool:
    """Say whether the other side closes."""
    connection.settimeout(60)
    try:
        while connection.recv(4096):
            pass
    except ConnectionError:
        pass
    except TimeoutError:
        return False
    finally:
        connection.close()
    return True


def test_eight_identical_notifications_are_one_visit_and_a_changed_one_is_another(
    publisher: Publisher, hub: Hub, tmp_path: Path
) -> None:
    with crawling(publisher, tmp_path / "c", "websub.secret='never'", "websub.gather_s=8.0") as (running, root):
        until(lambda: hub.subscribers)
        (subscriber,) = hub.subscribers.values()
        before = publisher.counts["/feed.atom"]
        assert [ask(subscriber.callback, b"the same") for _ in range(8)] == [204] * 8
        until(lambda: publisher.counts["/feed.atom"] > before)
        news = publisher.write()
        assert ask(subscriber.callback, b"another") == 204
        until(lambda: publisher.counts[news])
        assert publisher.counts["/feed.atom"] == before + 2
        told = status(root)["subscriptions"]
        assert told[0]["pings"] == 9  # type: ignore[index]
        running.until_commit()


def test_a_denied_subscription_is_reported(publisher: Publisher, hub: Hub, tmp_path: Path) -> None:
    hub.topics = ()
    with crawling(publisher, tmp_path / "c") as (_, root):
        until(lambda: hub.log)
        assert hub.log[0][0] == "denied"
        found = until(lambda: [one for one in status(root).get("subscriptions", []) if one["denied"]])  # type: ignore[attr-defined]
        assert found[0]["error"] == "denied: not served here"
        assert found[0]["topic"] == publisher.topic
        assert not hub.subscribers


def test_a_lease_is_renewed_before_it_ends_and_a_redirect_of_the_hub_is_followed(
    publisher: Publisher, hub: Hub, tmp_path: Path
) -> None:
    with Hub() as other:
        hub.redirect_to = other.url
        with crawling(publisher, tmp_path / "c", "websub.lease_s=60", "websub.renew_share=0.05"):
            until(lambda: len(other.log) >= 2)
    assert [what for what, _ in other.log[:2]] == ["subscribed", "subscribed"]
    assert len(other.subscribers) == 1
