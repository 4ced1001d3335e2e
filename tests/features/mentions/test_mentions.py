"""Notices of links, step by step as the recommendation has them, without a network."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gossamer.features.mentions.mentions import ATTEMPTS_MAX, REDIRECTS_MAX, RETRY_S, ROBOTS_S, Mentions
from gossamer.features.mentions.options import WebmentionOptions
from gossamer.model.links import ALLOWED, Found, Prerequisite, Verdict
from gossamer.model.pages import Findings
from gossamer.model.visits import Content, Failure, Reply, Request
from gossamer.options import convert
from gossamer.state.epoch import Epochs
from gossamer.state.store import Store
from gossamer.testing import reply
from gossamer.url.url import Url
from tests.features.revisit.test_hints import NAMER, NOW, url

SOURCE = "https://blog.example/post"
TARGET = "https://e.example/page"
ROBOTS = Prerequisite(url("https://new.example/robots.txt"), url("https://new.example/"), owner="robots")


@pytest.fixture
def epochs(tmp_path: Path) -> Iterator[Epochs]:
    store = Store(tmp_path / "store")
    yield Epochs(store)
    store.close()


def judge(page: Url, now: float) -> Verdict:
    if page.host == "new.example":
        return Verdict(prerequisite=ROBOTS, reason="robots.txt must be read first", park=True)
    return Verdict(reason="its host is excluded") if page.host == "excluded.example" else ALLOWED


def examine(page: Url, document: Reply) -> tuple[Content, Findings]:
    """Find each word of a document that is an address, as if it were a link of HTML."""
    links = [Found(word, "anchor") for word in document.body.decode().split() if "html" in document.media_type]
    return Content(document.body), Findings(links=links)


def of(epochs: Epochs, judge: Callable[[Url, float], Verdict] = judge, **options: object) -> Mentions:
    return Mentions(epochs, convert(WebmentionOptions, {"enabled": True, **options}), NAMER.name, judge, examine)


def is_ours(page: Url) -> bool:
    return page.host == "e.example"


def receive(mentions: Mentions, source: str = SOURCE, target: str = TARGET, now: float = NOW) -> int:
    return mentions.receive(source, target, is_ours, now).status


def answer(mentions: Mentions, result: Reply | Failure, now: float = NOW) -> Prerequisite | None:
    (asked,) = mentions.due(now)
    return mentions.answered(asked, result, b"", now)


def page(body: bytes, media_type: str = "text/html") -> Reply:
    return reply(body, media_type=media_type)


def test_a_source_that_links_to_its_target_is_verified_and_only_then_known(epochs: Epochs) -> None:
    mentions = of(epochs)
    assert receive(mentions) == 202
    assert mentions.take_verified(NOW) == []
    (asked,) = mentions.due(NOW)
    assert (asked.url.text, asked.owner, asked.is_about_origin) == (SOURCE, "webmention", False)
    assert mentions.due(NOW) == [], "one request each"
    bounded = mentions.fetch(asked, Request(SOURCE, "127.0.0.1", 443), NOW)
    assert bounded.body_bytes_max == 1 << 20
    assert mentions.answered(asked, page(b"https://other.example/ https://E.example:443/page#part"), b"", NOW) is None
    assert [(source.text, target.text) for source, target in mentions.take_verified(NOW)] == [(SOURCE, TARGET)]
    assert mentions.counts() == {"waiting": 0, "verified": 1, "refused": 0}


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("", TARGET),
        (SOURCE, ""),
        ("ftp://blog.example/", TARGET),
        ("javascript:alert(1)", TARGET),
        (SOURCE, "no address"),
        ("https://e.example/page#a", "https://E.example/page"),
        ("https://E.example", "https://e.example/"),
        (SOURCE, "https://foreign.example/"),
    ],
)
def test_a_wrong_notice_is_refused_with_a_reason(epochs: Epochs, source: str, target: str) -> None:
    mentions = of(epochs)
    answer = mentions.receive(source, target, is_ours, NOW)
    assert answer.status == 400
    assert answer.text
    assert mentions.due(NOW) == []


@pytest.mark.parametrize(
    ("source", "target", "requested"),
    [
        ("https://BLOG.example", "https://E.example:443/page", "https://blog.example/"),
        ("HTTP://blog.example:80/a/../b", " https://e.example/x/../page#part", "http://blog.example/b"),
        ("https://b\u00fccher.example/", TARGET, "https://xn--bcher-kva.example/"),
    ],
)
def test_addresses_are_read_as_a_browser_reads_them(epochs: Epochs, source: str, target: str, requested: str) -> None:
    mentions = of(epochs)
    assert receive(mentions, source, target) == 202
    (asked,) = mentions.due(NOW)
    assert (asked.url.text, asked.url.host) == (requested, requested.split("/")[2])
    mentions.answered(asked, page(TARGET.encode()), b"", NOW)
    assert len(mentions.take_verified(NOW)) == 1


@pytest.mark.parametrize(
    ("document", "state"),
    [
        (page(b"nothing"), "refused"),
        (page(b"https://e.example/page/longer https://e.example/"), "refused"),
        (page(TARGET.encode(), "text/plain"), "verified"),
        (page(b'{"a": "https://e.example/page"}', "application/json"), "verified"),
        (page(b"see https://e.example/page.\n", "text/plain"), "verified"),
        (page(b"[x](https://E.example:443/page)", "text/markdown"), "verified"),
        (page(b"https://e.example/pages https://e.example/page/2", "text/plain"), "refused"),
        (page(rb'{"a": "https:\/\/e.example\/page"}', "application/json"), "verified"),
        (page(b'{"a": "https://e.example/page/2"}', "application/json"), "refused"),
        (reply(b"", status=410), ""),
        (reply(b"", status=404), ""),
    ],
)
def test_the_document_decides(epochs: Epochs, document: Reply, state: str) -> None:
    mentions = of(epochs)
    receive(mentions)
    assert answer(mentions, document) is None
    mentions.take_verified(NOW)
    assert {name for name, count in mentions.counts().items() if count} == ({state} if state else set())


def test_redirects_are_followed_up_to_a_limit(epochs: Epochs) -> None:
    mentions = of(epochs)
    receive(mentions)
    (asked,) = mentions.due(NOW)
    for number in range(REDIRECTS_MAX):
        moved = reply(b"", status=302, headers=(("Location", f"/to{number}"),))
        following = mentions.answered(asked, moved, b"", NOW)
        assert following is not None
        assert following.url.text == f"https://blog.example/to{number}"
        asked = following
    assert mentions.answered(asked, reply(b"", status=302, headers=(("Location", "/on"),)), b"", NOW) is None
    assert mentions.counts()["refused"] == 1


@pytest.mark.parametrize("host", ["excluded.example", "new.example"])
def test_a_redirect_is_judged_like_a_source(epochs: Epochs, host: str) -> None:
    mentions = of(epochs)
    receive(mentions)
    moved = reply(b"", status=301, headers=(("Location", f"https://{host}/"),))
    following = answer(mentions, moved)
    if host == "excluded.example":
        assert following is None
        assert mentions.counts()["refused"] == 1
    else:
        assert following == ROBOTS
        assert mentions.due(NOW + ROBOTS_S / 2) == []
        assert mentions.due(NOW + ROBOTS_S) == [ROBOTS]


def test_a_source_that_cannot_be_fetched_is_tried_again_and_given_up(epochs: Epochs) -> None:
    mentions = of(epochs)
    receive(mentions)
    now = NOW
    for attempt in range(ATTEMPTS_MAX):
        assert mentions.counts()["waiting"] == 1
        answer(mentions, Failure("timeout", "no answer", retry=True) if attempt else reply(b"", status=503), now)
        assert mentions.due(now) == []
        now += RETRY_S * 2**attempt
    assert mentions.counts() == {"waiting": 0, "verified": 0, "refused": 1}


def test_a_repeated_notice_is_verified_again_after_its_pause(epochs: Epochs) -> None:
    mentions = of(epochs, source_s_min=100.0)
    receive(mentions)
    assert receive(mentions) == 202, "it waits already"
    answer(mentions, page(TARGET.encode()))
    mentions.take_verified(NOW)
    assert receive(mentions, now=NOW + 1) == 202
    assert mentions.due(NOW + 99) == []
    answer(mentions, page(b"no longer"), NOW + 100)
    assert mentions.take_verified(NOW + 100) == []
    assert mentions.counts()["refused"] == 1


def test_a_source_is_requested_once_an_hour_for_all_targets_also_when_gone(epochs: Epochs) -> None:
    """Else notices are a way to have a host requested as often as a sender likes."""
    mentions = of(epochs, source_s_min=100.0)
    receive(mentions)
    answer(mentions, page(b"nothing"))
    assert receive(mentions, target=TARGET + "2", now=NOW + 1) == 202
    assert mentions.due(NOW + 99) == [], "another target, the same source"
    answer(mentions, reply(b"", status=410), NOW + 100)
    assert receive(mentions, target=TARGET + "2", now=NOW + 101) == 202
    assert mentions.due(NOW + 199) == [], "a source that is gone"
    receive(of(epochs, source_s_min=100.0), target=TARGET + "3", now=NOW + 102)
    assert of(epochs, source_s_min=100.0).due(NOW + 99) == [], "after a death too"


def test_what_waits_is_bounded_by_host_and_in_all(epochs: Epochs) -> None:
    mentions = of(epochs, host_waiting_max=2, notices_max=3)
    assert [receive(mentions, f"https://a.example/{n}") for n in range(3)] == [202, 202, 429]
    assert [receive(mentions, f"https://{n}.example/") for n in "bc"] == [202, 503]
    mentions.answered(mentions.due(NOW)[0], page(b"nothing"), b"", NOW)
    assert receive(mentions, "https://c.example/") == 202, "in place of the refused one"
    assert mentions.counts() == {"waiting": 3, "verified": 0, "refused": 0}


def test_notices_outlast_the_process(epochs: Epochs) -> None:
    mentions = of(epochs)
    receive(mentions)
    answer(mentions, page(TARGET.encode()))
    again = of(epochs)
    assert again.counts()["waiting"] == 1, "a verified link is verified again until it is followed"
    answer(again, page(TARGET.encode()), NOW + RETRY_S)
    assert len(again.take_verified(NOW)) == 1
    assert of(epochs).counts() == {"waiting": 0, "verified": 1, "refused": 0}


def test_a_full_queue_is_requested_in_turns(epochs: Epochs) -> None:
    mentions = of(epochs)
    for number in range(120):
        receive(mentions, f"https://h{number}.example/")
    assert [len(mentions.due(NOW)) for _ in range(4)] == [50, 50, 20, 0]
