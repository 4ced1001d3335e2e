"""Subscriptions, step by step as the recommendation has them, without a network."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import parse_qs

import pytest

from gossamer.features.revisit.options import WebsubOptions
from gossamer.features.revisit.websub import (
    HUBS_MAX,
    ROBOTS_S,
    SITE_SUBSCRIPTIONS_MIN,
    Check,
    Subscription,
    Subscriptions,
)
from gossamer.model.links import ALLOWED, Found, Prerequisite, Verdict
from gossamer.model.visits import Failure
from gossamer.options import convert
from gossamer.state.epoch import Epochs
from gossamer.state.schema import MENTIONED
from gossamer.state.store import Store
from gossamer.testing import reply
from gossamer.url.url import Url
from gossamer.world.dice import unguessable
from tests.features.revisit.test_hints import NAMER, NOW, url

TOPIC = "https://e.example/feed"
HUB = "https://hub.example/"
PAGE = url(TOPIC)


@pytest.fixture
def epochs(tmp_path: Path) -> Iterator[Epochs]:
    store = Store(tmp_path / "store")
    yield Epochs(store)
    store.close()


EXCLUDED = Verdict(reason="its host is excluded")
ROBOTS = Prerequisite(url("https://new.example/robots.txt"), url("https://new.example/"), owner="robots")


def judge(hub: Url, now: float) -> Verdict:
    if hub.host == "new.example":
        return Verdict(prerequisite=ROBOTS, reason="robots.txt must be read first", park=True)
    return EXCLUDED if hub.host == "excluded.example" else ALLOWED


def made(epochs: Epochs, judge: Callable[[Url, float], Verdict] = judge, **options: object) -> Subscriptions:
    return Subscriptions(
        epochs, convert(WebsubOptions, options), "https://me.example/hooks", NAMER.name, judge, unguessable
    )


def stated(*hubs: str, topic: str = TOPIC) -> list[Found]:
    return [*(Found(hub, "hub") for hub in hubs), Found(topic, "self"), Found("https://e.example/a", "feed")]


def sent(prerequisites: list[Prerequisite]) -> tuple[Prerequisite, dict[str, str]]:
    (prerequisite,) = prerequisites
    return prerequisite, {name: value for name, (value,) in parse_qs(prerequisite.form.decode()).items()}


def standing(subscriptions: Subscriptions, lease: str = "1000") -> Subscription:
    """A subscription that its hub has verified."""
    subscriptions.subscribe(PAGE, stated(HUB), NOW)
    prerequisite, _ = sent(subscriptions.due(NOW))
    assert subscriptions.verify(prerequisite.subject, "subscribe", TOPIC, lease, NOW)
    one = subscriptions.get(prerequisite.subject)
    assert one is not None
    return one


def test_a_request_says_all_that_section_5_1_asks_for(epochs: Epochs) -> None:
    subscriptions = made(epochs)
    subscriptions.subscribe(PAGE, stated(HUB), NOW)
    prerequisite, fields = sent(subscriptions.due(NOW))
    assert prerequisite.url.text == HUB
    assert fields["hub.callback"] == f"https://me.example/hooks/websub/{prerequisite.subject}"
    assert fields["hub.mode"] == "subscribe"
    assert fields["hub.topic"] == TOPIC
    assert fields["hub.lease_seconds"] == "864000"
    assert 40 < len(fields["hub.secret"]) < 200
    assert len(prerequisite.subject) >= 32
    assert subscriptions.due(NOW) == [], "it was asked"


@pytest.mark.parametrize(
    ("policy", "hub", "given"),
    [
        ("https", HUB, True), ("https", "http://hub.example/", False), ("always", "http://hub.example/", True),
        ("never", HUB, False),
    ],
)  # fmt: skip
def test_secrets_go_where_they_may(epochs: Epochs, policy: str, hub: str, *, given: bool) -> None:
    subscriptions = made(epochs, secret=policy)
    subscriptions.subscribe(PAGE, stated(hub), NOW)
    assert ("hub.secret" in sent(subscriptions.due(NOW))[1]) == given


def test_topics_of_others_and_hubs_that_are_none_are_left_alone(epochs: Epochs) -> None:
    subscriptions = made(epochs, subscriptions_max=2)
    subscriptions.subscribe(PAGE, [Found(TOPIC, "self")], NOW)
    subscriptions.subscribe(PAGE, stated(HUB, topic="https://victim.example/feed"), NOW)
    subscriptions.subscribe(PAGE, stated("ftp://hub.example/", "mailto:x"), NOW)
    assert len(subscriptions) == 0
    subscriptions.subscribe(PAGE, stated("https://excluded.example/"), NOW)
    assert subscriptions.due(NOW) == []
    subscriptions.subscribe(PAGE, [Found(HUB, "hub")], NOW)
    assert len(subscriptions) == 1
    for number in range(5):
        subscriptions.subscribe(url(f"https://e.example/{number}"), [Found(HUB, "hub")], NOW)
    assert len(subscriptions) == 2
    assert all(len(one.hubs) <= HUBS_MAX for one in subscriptions.all())


def test_only_what_was_asked_for_is_confirmed(epochs: Epochs) -> None:
    subscriptions = made(epochs)
    subscriptions.subscribe(PAGE, stated(HUB), NOW)
    token = subscriptions.all()[0].token
    assert not subscriptions.verify(token, "subscribe", TOPIC, "10", NOW), "nothing was sent yet"
    subscriptions.due(NOW)
    assert subscriptions.get(token) is None, "and nothing may be told before it is verified"
    for wrong in (("guessed", "subscribe", TOPIC), (token, "unsubscribe", TOPIC), (token, "subscribe", TOPIC + "x"),
                  (token, "", TOPIC)):  # fmt: skip
        assert not subscriptions.verify(*wrong, "10", NOW)
    assert subscriptions.verify(token, "subscribe", TOPIC, "1000", NOW)
    assert not subscriptions.verify(token, "subscribe", TOPIC, "1000", NOW), "once for each time that we asked"


@pytest.mark.parametrize(
    ("said", "lease_s"), [("1000", 1000), ("5", 60), ("", 864_000), ("x", 864_000), ("0", 864_000)]
)
def test_a_lease_is_renewed_before_it_ends_under_the_same_address(epochs: Epochs, said: str, lease_s: int) -> None:
    subscriptions = made(epochs)
    one = standing(subscriptions, said)
    assert one.lease_until == NOW + lease_s
    assert subscriptions.due(NOW + lease_s * 0.79) == []
    prerequisite, fields = sent(subscriptions.due(NOW + lease_s * 0.81))
    assert prerequisite.subject == one.token
    assert fields["hub.secret"] == one.secret
    assert subscriptions.get(one.token) is one, "what comes meanwhile counts"
    assert subscriptions.verify(one.token, "subscribe", TOPIC, said, NOW + lease_s * 0.82)
    assert one.lease_until == NOW + lease_s * 0.82 + lease_s


def test_a_hub_that_refuses_is_asked_later_and_the_next_one_has_its_turn(epochs: Epochs) -> None:
    subscriptions = made(epochs, retry_s_first=60.0, retry_s_max=200.0)
    other = "https://other.example/hub"
    subscriptions.subscribe(PAGE, stated(HUB, other), NOW)
    now, asked, pauses, errors = NOW, [], [], []
    for number in range(5):
        prerequisite, _ = sent(subscriptions.due(now))
        asked.append(prerequisite.url.text)
        answer = reply(b"no", 500) if number % 2 else Failure("timeout", "no end of it", retry=True)
        assert subscriptions.answered(prerequisite, answer, b"", now) is None
        errors.append(subscriptions.all()[0].error)
        after = subscriptions.next_at()
        assert after is not None
        pauses.append(after - now)
        now = after
    assert asked == [HUB, other, HUB, other, HUB]
    assert pauses == [60.0, 120.0, 200.0, 200.0, 200.0]
    assert errors == ["no end of it", "HTTP 500"] * 2 + ["no end of it"]


def test_a_hub_that_takes_it_and_never_verifies_is_asked_again(epochs: Epochs) -> None:
    subscriptions = made(epochs, answer_s_max=30.0)
    subscriptions.subscribe(PAGE, stated(HUB), NOW)
    prerequisite, _ = sent(subscriptions.due(NOW))
    assert subscriptions.answered(prerequisite, reply(b"", 202), b"", NOW) is None
    assert subscriptions.due(NOW + 29) == []
    assert sent(subscriptions.due(NOW + 31))[0].subject == prerequisite.subject


def test_a_verification_before_the_answer_counts(epochs: Epochs) -> None:
    subscriptions = made(epochs)
    subscriptions.subscribe(PAGE, stated(HUB), NOW)
    prerequisite, _ = sent(subscriptions.due(NOW))
    assert subscriptions.verify(prerequisite.subject, "subscribe", TOPIC, "1000", NOW)
    subscriptions.answered(prerequisite, Failure("timeout", "its answer was late", retry=True), b"", NOW)
    one = subscriptions.get(prerequisite.subject)
    assert one is not None
    assert not one.failures


def test_redirects_of_a_hub_are_followed_with_the_request_and_end(epochs: Epochs) -> None:
    subscriptions = made(epochs)
    subscriptions.subscribe(PAGE, stated(HUB), NOW)
    prerequisite, _ = sent(subscriptions.due(NOW))
    hops = 0
    following: Prerequisite | None = prerequisite
    while following is not None:
        last = following
        moved = reply(b"", 308, [("Location", f"https://hub.example/{hops}")])
        following = subscriptions.answered(following, moved, b"", NOW)
        hops += 1
    assert (hops, last.form) == (4, prerequisite.form)
    away = reply(b"", 307, [("Location", "https://excluded.example/")])
    assert subscriptions.answered(prerequisite, away, b"", NOW) is None
    assert (
        subscriptions.answered(prerequisite, reply(b"", 301, [("Location", "https://hub.example/x")]), b"", NOW) is None
    )


def test_a_denied_topic_is_left_alone_for_long(epochs: Epochs) -> None:
    subscriptions = made(epochs)
    one = standing(subscriptions)
    assert not subscriptions.deny(one.token, TOPIC + "x", "", NOW)
    assert not subscriptions.deny("guessed", TOPIC, "", NOW)
    assert subscriptions.deny(one.token, TOPIC, "not\nhere" + "x" * 999, NOW)
    assert subscriptions.get(one.token) is None
    assert len(one.error) <= 200
    assert subscriptions.due(NOW + 86_000) == []
    assert len(subscriptions.due(NOW + 87_000)) == 1


def test_another_hub_is_asked_when_the_page_names_another(epochs: Epochs) -> None:
    subscriptions = made(epochs)
    one = standing(subscriptions)
    subscriptions.subscribe(PAGE, stated(HUB), NOW + 1)
    assert subscriptions.due(NOW + 1) == []
    subscriptions.subscribe(PAGE, stated("https://other.example/"), NOW + 1)
    prerequisite, _ = sent(subscriptions.due(NOW + 1))
    assert (prerequisite.url.text, prerequisite.subject) == ("https://other.example/", one.token)


def test_leaving_is_confirmed_once_and_forgets(epochs: Epochs) -> None:
    subscriptions = made(epochs)
    one = standing(subscriptions)
    assert subscriptions.leave(NOW) == 1
    prerequisite, fields = sent(subscriptions.due(NOW))
    assert fields == {
        "hub.callback": f"https://me.example/hooks/websub/{one.token}", "hub.mode": "unsubscribe", "hub.topic": TOPIC
    }  # fmt: skip
    assert subscriptions.verify(prerequisite.subject, "unsubscribe", TOPIC, "", NOW)
    assert subscriptions.get(one.token) is None
    assert len(made(epochs)) == 0


def test_all_of_it_survives_with_the_epoch_and_what_was_under_way_is_asked_anew(epochs: Epochs) -> None:
    epochs.put(MENTIONED.family, PAGE.partition.to_bytes(2) + MENTIONED.marks, b"of another module")
    first = made(epochs)
    first.subscribe(PAGE, stated(HUB), NOW)
    prerequisite, _ = sent(first.due(NOW))
    second = made(epochs)
    assert sent(second.due(NOW + 1))[0].subject == prerequisite.subject
    assert second.verify(prerequisite.subject, "subscribe", TOPIC, "1000", NOW + 2)
    third = made(epochs)
    assert third.due(NOW + 3) == []
    one = third.get(prerequisite.subject)
    assert one is not None
    assert [page.text for page in third.note_ping(one, b"a", NOW + 4).pages] == [TOPIC]
    assert made(epochs).all()[0].pings == 1


def test_repeats_within_the_window_need_no_visit_and_all_others_share_one_at_its_end(epochs: Epochs) -> None:
    subscriptions = made(epochs, gather_s=5)
    one = standing(subscriptions)
    given = [
        (b"a", 0, "now"), (b"a", 1, None), (b"a", 4.9, None),  # Eight of them are one visit.
        (b"a", 5, "now"), (b"b", 6, 10), (b"a", 7, None), (b"b", 8, 10), (b"c", 9, 10),
        (b"", 20, "now"), (b"", 21, 25), (b"", 24.9, 25),  # Without content nobody knows what changed.
    ]  # fmt: skip
    for digest, at, expected in given:
        due = subscriptions.note_ping(one, digest, NOW + at)
        if expected is None:
            assert due.pages == [], (digest, at)
        else:
            assert [page.text for page in due.pages] == [TOPIC]
            assert due.at == NOW + (at if expected == "now" else float(str(expected))), (digest, at)
    again = made(epochs, gather_s=5).get(one.token)
    assert again is not None
    assert (again.pings, again.gathered_until) == (11, NOW + 25)


def test_a_clock_that_was_set_back_opens_another_window(epochs: Epochs) -> None:
    subscriptions = made(epochs, gather_s=5)
    one = standing(subscriptions)
    subscriptions.note_ping(one, b"a", NOW + 1_000)
    assert not subscriptions.note_ping(one, b"a", NOW + 1_000).pages, "a repeat at the same instant"
    assert subscriptions.note_ping(one, b"a", NOW).pages


def test_without_a_window_each_notification_is_due_at_once(epochs: Epochs) -> None:
    subscriptions = made(epochs, gather_s=0)
    one = standing(subscriptions)
    assert [bool(subscriptions.note_ping(one, b"a", NOW).pages) for _ in range(3)] == [True] * 3


@pytest.mark.parametrize("method", ["sha1", "sha256", "sha384", "sha512", "SHA256"])
def test_signatures_by_every_method_of_section_7_1(method: str) -> None:
    body = b"news" * 1000
    right = hmac.new(b"secret", body, getattr(hashlib, method.lower())).hexdigest()

    def check(header: str, secret: str = "secret") -> bool:
        one = Check(secret, header)
        one.update(body[:7])
        one.update(body[7:])
        return one.is_right()

    assert check(f"{method}={right}")
    assert check(f"{method}={right.upper()}")
    wrong = (
        "",
        method,
        f"{method}=",
        f"{method}={right[:-1]}",
        f"{method}={right}0",
        f"md5={right}",
        f"={right}",
        "é=é",
    )
    assert not any(check(header) for header in wrong)
    assert not check(f"{method}={right}", "other")
    assert check("", ""), "who was given no secret signs nothing"


# ---- what pages name is not what a hub's operator permits


def test_the_robots_txt_of_a_hub_is_read_once_before_it_is_asked(epochs: Epochs) -> None:
    subscriptions = made(epochs)
    for page in ("a", "b"):
        topic = f"https://e.example/{page}"
        subscriptions.subscribe(url(topic), stated("https://new.example/", topic=topic), NOW)
    assert subscriptions.due(NOW) == [ROBOTS]
    assert subscriptions.next_at() == NOW + ROBOTS_S
    subscriptions._judge = lambda _hub, _now: ALLOWED
    assert [one.owner for one in subscriptions.due(NOW + ROBOTS_S)] == ["websub"] * 2


def test_a_hub_whose_robots_txt_disallows_it_is_not_asked(epochs: Epochs) -> None:
    subscriptions = made(epochs, lambda _hub, _now: Verdict(outcome="robots_denied", reason="robots.txt disallows it"))
    subscriptions.subscribe(PAGE, stated(HUB), NOW)
    assert subscriptions.due(NOW) == []
    (one,) = subscriptions.all()
    assert (one.failures, one.error) == (1, "its hub may not be contacted: robots.txt disallows it")


def test_a_redirect_to_a_host_whose_robots_txt_is_unknown_waits_for_it(epochs: Epochs) -> None:
    subscriptions = made(epochs)
    subscriptions.subscribe(PAGE, stated(HUB), NOW)
    (asked,) = subscriptions.due(NOW)
    led = reply(HUB, 307, headers=(("Location", "https://new.example/hub"),))
    assert subscriptions.answered(asked, led, b"", NOW) is None
    assert subscriptions.due(NOW) == [ROBOTS]
    subscriptions._judge = lambda _hub, _now: ALLOWED
    (again,) = subscriptions.due(NOW + ROBOTS_S)
    assert again.url.text == "https://new.example/hub"


def pages_of(subscriptions: Subscriptions, host: str, count: int) -> None:
    for number in range(count):
        topic = f"https://{host}/{number}"
        subscriptions.subscribe(url(topic), stated(f"https://hub.{host}/", topic=topic), NOW)


def test_one_site_does_not_take_the_places_of_others(epochs: Epochs) -> None:
    subscriptions = made(epochs, subscriptions_max=15)
    pages_of(subscriptions, "evil.example", 60)
    assert len(subscriptions) == SITE_SUBSCRIPTIONS_MIN
    pages_of(subscriptions, "good.example", 1)
    assert len(subscriptions) == SITE_SUBSCRIPTIONS_MIN + 1
    for asked in subscriptions.due(NOW):
        subscriptions.answered(asked, reply(HUB, 404), b"", NOW)
    pages_of(subscriptions, "evil.example", 60)
    assert len(subscriptions) == SITE_SUBSCRIPTIONS_MIN + 1, "each takes the place of one that a hub refused"


def test_what_no_hub_has_verified_makes_room(epochs: Epochs) -> None:
    subscriptions = made(epochs, subscriptions_max=2)
    pages_of(subscriptions, "evil.example", 2)
    pages_of(subscriptions, "good.example", 1)
    assert {one.page.split("/")[2] for one in subscriptions.all()} == {"evil.example"}, "none has failed yet"
    for asked in subscriptions.due(NOW):
        subscriptions.answered(asked, reply(HUB, 404), b"", NOW)
    pages_of(subscriptions, "good.example", 1)
    assert sorted(one.page.split("/")[2] for one in subscriptions.all()) == ["evil.example", "good.example"]


def test_a_subscription_that_stands_makes_no_room(epochs: Epochs) -> None:
    subscriptions = made(epochs, subscriptions_max=1)
    one = standing(subscriptions)
    pages_of(subscriptions, "good.example", 1)
    assert subscriptions.all() == [one]
