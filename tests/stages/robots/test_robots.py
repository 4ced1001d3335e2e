from collections.abc import Iterator
from pathlib import Path

import pytest

from gossamer.model.links import Prerequisite
from gossamer.model.visits import Failure, Reply
from gossamer.stages.robots.gate import ELSEWHERE_S_MAX
from gossamer.stages.robots.options import RobotsOptions
from gossamer.stages.robots.robots import SiteRobots
from gossamer.state.epoch import Epochs
from gossamer.state.store import Store
from gossamer.url.canonical import Canonicalizer
from gossamer.url.name import Namer
from gossamer.url.options import UrlOptions
from gossamer.url.url import Url
from gossamer.world.dice import Dice

NOW = 1_800_000_000.0
name = Namer(Canonicalizer(UrlOptions().rules)).name


def url(text: str) -> Url:
    named = name(text)
    assert named is not None
    return named


@pytest.fixture
def epochs(tmp_path: Path) -> Iterator[Epochs]:
    store = Store(tmp_path / "store", 1 << 20, 1 << 20)
    yield Epochs(store)
    store.close()


def robots(epochs: Epochs, **more: object) -> SiteRobots:
    return SiteRobots(epochs, RobotsOptions(**more), name, Dice(1))  # type: ignore[arg-type]


def reply(status: int, *headers: tuple[str, str]) -> Reply:
    return Reply("https://example.org/robots.txt", status, headers, b"", "192.0.2.1", NOW, 0.1, 100)


def test_what_was_learnt_outlives_its_memory(epochs: Epochs) -> None:
    page = url("https://example.org/x")
    site = robots(epochs)
    assert site.verdict(page, NOW).kind == "unknown"
    prerequisite = site.prerequisite(page)
    assert prerequisite.url.text == "https://example.org/robots.txt"
    assert (
        site.answer(prerequisite, reply(200), b"User-agent: *\nDisallow: /x\nCrawl-delay: 4\nSitemap: /s", NOW) is None
    )
    for one in (site, robots(epochs)):
        assert one.verdict(page, NOW).kind == "denied"
        assert one.verdict(url("https://example.org/y"), NOW).kind == "allowed"
        assert one.crawl_delay_s(page) == 4.0
        assert one.sitemaps(page) == ("/s",)
        # Another scheme or port is another origin.
        assert one.verdict(url("http://example.org/x"), NOW).kind == "unknown"
        assert one.verdict(url("https://example.org:8443/x"), NOW).kind == "unknown"


def test_a_redirect_is_followed_and_its_answer_is_the_origins(epochs: Epochs) -> None:
    page = url("https://example.org/x")
    site = robots(epochs)
    prerequisite = site.prerequisite(page)
    target = site.answer(prerequisite, reply(301, ("Location", "https://other.example/r")), b"", NOW)
    assert target == "https://other.example/r"
    assert site.verdict(page, NOW).kind == "unknown"
    hop = Prerequisite(prerequisite.origin, url(target), 1)
    assert site.answer(hop, reply(200), b"User-agent: *\nDisallow: /x", NOW) is None
    assert site.verdict(page, NOW).kind == "denied"
    assert site.verdict(url("https://other.example/x"), NOW).kind == "unknown"


def test_failures_are_remembered(epochs: Epochs) -> None:
    page = url("https://example.org/x")
    site = robots(epochs)
    for _ in range(3):
        site.answer(site.prerequisite(page), Failure("timeout", "timed out"), b"", NOW)
    again = robots(epochs).verdict(page, NOW)
    assert again.kind == "wait"
    assert again.until > NOW + 120
    assert "3 attempts" in again.reason


def test_memory_has_a_bound_and_loses_nothing(epochs: Epochs) -> None:
    site = robots(epochs, cache_hosts_max=5)
    pages = [url(f"https://h{i}.example/x") for i in range(50)]
    for page in pages:
        site.answer(site.prerequisite(page), reply(200), b"User-agent: *\nDisallow: /x", NOW)
    assert len(site._records) == 5
    assert all(site.verdict(page, NOW).kind == "denied" for page in pages)


def refused(reason: str = "refused") -> Failure:
    return Failure("connect_error", reason, retry=True, host_level=True)


def test_a_closed_port_of_http_does_not_keep_the_pages_of_https(epochs: Epochs) -> None:
    secure, plain = url("https://example.org/x"), url("http://example.org/x")
    site = robots(epochs)
    site.answer(site.prerequisite(plain), refused(), b"", NOW)
    assert site.verdict(plain, NOW).kind == "wait"
    site.answer(site.prerequisite(secure), reply(200), b"", NOW)
    assert site.verdict(plain, NOW).kind == "wait"
    assert site.verdict(secure, NOW).kind == "allowed"


def test_another_port_is_another_server(epochs: Epochs) -> None:
    other, plain = url("http://example.org:8080/x"), url("http://example.org/x")
    site = robots(epochs)
    site.answer(site.prerequisite(other), refused(), b"", NOW)
    site.answer(site.prerequisite(plain), reply(200), b"", NOW)
    assert site.verdict(other, NOW).kind == "wait"


def test_of_the_crawl_delays_of_http_and_https_the_longer_one_holds(epochs: Epochs) -> None:
    secure, plain = url("https://example.org/x"), url("http://example.org/x")
    site = robots(epochs)
    site.answer(site.prerequisite(secure), reply(200), b"User-agent: *\nCrawl-delay: 4\n", NOW)
    site.answer(site.prerequisite(plain), reply(404), b"", NOW)
    assert site.crawl_delay_s(plain) == site.crawl_delay_s(secure) == 4.0
    assert site.crawl_delay_s(url("http://www.example.org/")) is None


def test_ftp_is_ruled_by_its_own_robots_txt_and_schemes_without_one_by_none(epochs: Epochs) -> None:
    site = robots(epochs)
    for free in ("gopher://example.org/0/x", "file:///x"):
        assert site.verdict(url(free), NOW).kind == "allowed"
    page = url("ftp://example.org/x")
    prerequisite = site.prerequisite(page)
    assert prerequisite.url.text == "ftp://example.org/robots.txt"
    assert site.answer(prerequisite, Failure("http_error", "FTP 421 too many", retry=True), b"", NOW) is None
    assert site.verdict(page, NOW).kind == "wait"
    assert site.answer(prerequisite, Failure("http_error", "FTP 550 no such file"), b"", NOW) is None
    assert site.verdict(page, NOW).kind == "allowed"
    done = Reply(prerequisite.url.text, 226, (), b"User-agent: *\nDisallow: /x", "192.0.2.1", NOW, 0.1, 100)
    assert site.answer(prerequisite, done, done.body, NOW) is None
    assert site.verdict(page, NOW).kind == "denied"
    assert site.verdict(url("ftp://example.org/y"), NOW).kind == "allowed"


def test_an_origin_where_only_outlinks_lead_is_given_up_soon(epochs: Epochs) -> None:
    """A check has links to hundreds of dead hosts, and each keeps it waiting."""
    own = url("https://example.org/x")
    other = url("https://dead.example/x")
    options = RobotsOptions(robots_wait_max_s=60.0)
    site = SiteRobots(epochs, options, name, Dice(1), is_elsewhere=lambda origin: origin.host != "example.org")
    for page in (own, other):
        failure = Failure("timeout", "no answer")
        assert site.answer(site.prerequisite(page), failure, b"", NOW) is None
    assert site.verdict(other, NOW).until == NOW + ELSEWHERE_S_MAX
    assert site.verdict(other, NOW + ELSEWHERE_S_MAX - 0.1).kind == "wait"
    assert site.verdict(other, NOW + ELSEWHERE_S_MAX).kind == "given_up"
    assert site.verdict(own, NOW + ELSEWHERE_S_MAX).kind == "wait"
    refused = Failure("connect_error", "refused")
    again = url("https://again.example/x")
    assert site.answer(site.prerequisite(again), refused, b"", NOW) is None
    assert site.verdict(again, NOW + 5.0).kind == "unknown", "it is tried again before"
