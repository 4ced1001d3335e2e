"""A pool of proxies: each site keeps one, those that fail are left out, and refusals hold for the whole crawl."""

from __future__ import annotations

import http.server
from collections import Counter
from pathlib import Path
from zlib import crc32

import pytest

from gossamer.cli.status_view import status_text
from gossamer.features.proxies.options import ProxiesOptions
from gossamer.features.proxies.pool import ProxyPool
from gossamer.model.errors import ConfigError
from gossamer.model.status import read_status
from gossamer.model.visits import Request
from gossamer.testing import reply
from gossamer.url.site import site_of
from tests.answering import Answering, serving
from tests.proxies import SmallProxy
from tests.ring.crawls import OWN, Crawled, crawl
from tests.ring.test_secrets import contents
from tests.stages.scope.links import named

PAGES = 5
HOSTS = ("a.test", "b.test", "c.test", "d.test", "e.example.de", "f.example.de", "www.other.de")


class Sites(http.server.ThreadingHTTPServer):
    """Some pages on every host; `/walled/` is refused."""

    daemon_threads = True

    def __init__(self) -> None:
        self.got: Counter[str] = Counter()
        sites = self

        class Handler(Answering):
            def get(self) -> None:
                host = self.headers["Host"].partition(":")[0]
                sites.got[f"{host}{self.path}"] += 1
                if self.path == "/robots.txt":
                    self.answer(200, b"User-agent: *\nDisallow: /private", media_type="text/plain")
                elif self.path == "/busy":
                    self.answer(429, b"", ("Retry-After", "3600"))
                elif self.path == "/walled":
                    self.answer(403)
                elif self.path == "/private":
                    self.answer(404)
                else:
                    number = int(self.path[1:] or 0)
                    links = (f"/{number + 1}", "/walled", "/private") if number < PAGES - 1 else ()
                    self.answer(200, "".join(f"<a href={link}>x</a>" for link in links).encode())

        super().__init__(("127.0.0.1", 0), Handler)


def crawled(directory: Path, sites: Sites, urls: str, *sets: str, paths: str = "") -> Crawled:
    hosts = directory.with_suffix(".hosts")
    hosts.write_text(f"127.0.0.1 {' '.join(HOSTS)}\n")
    seeds = tuple(f"http://{host}:{sites.server_port}/{paths}" for host in HOSTS)
    brief = ("politeness.backoff_s_first=0.1", "crawl.commit_s=0.2", f"resolve.hosts_file={hosts}")
    return crawl(seeds, directory, *OWN, *brief, f"proxies.urls={{{urls}}}", *sets)


@pytest.mark.promise("Operation", "With a pool of proxies a site keeps its proxy, and no request goes without one.")
@pytest.mark.parametrize("resolves", ["true", "false"])
def test_each_site_keeps_one_proxy_by_its_label(tmp_path: Path, resolves: str) -> None:
    sites = Sites()
    one = SmallProxy(sites.server_port)
    two = SmallProxy(sites.server_port, "socks5")
    of_de = SmallProxy(sites.server_port, user="me:s3cretXYZZY@")
    with serving(sites, one, two, of_de):
        found = crawled(
            tmp_path / "crawl", sites, f"any=['{one.url}', '{two.url}'], de=['{of_de.url}']",
            "proxies.places={'.de'='de', 'a.test'='any', 'b.test'='any', 'c.test'='any', 'd.test'='any'}",
            f"fetch.proxy_resolves={resolves}",
        )  # fmt: skip
    assert found.end == "finished", found.critical()
    assert Counter(row["outcome"] for row in found.rows)["fetched"] == len(HOSTS) * PAGES
    assert len(one.passed) + len(two.passed) + len(of_de.passed) > 0
    if resolves == "true":
        by_proxy = [{place.partition(":")[0] for place in each.passed} for each in (one, two, of_de)]
        assert by_proxy[2] == {host for host in HOSTS if host.endswith(".de")}
        assert by_proxy[0] | by_proxy[1] == {host for host in HOSTS if host.endswith(".test")}
        assert not by_proxy[0] & by_proxy[1], "a site keeps its proxy, also for its robots.txt"
    else:
        assert {place.partition(":")[0] for each in (one, two, of_de) for place in each.passed} == {"127.0.0.1"}
    assert [key for key in sites.got if "private" in key] == []
    assert max(count for key, count in sites.got.items() if "walled" in key) == 1, "no second proxy after a refusal"
    shown = [place for place, data in contents(tmp_path / "crawl") if b"s3cretXYZZY" in data]
    assert all(place.endswith("crawl.toml") for place in shown)


def test_a_site_that_never_answers_is_tried_through_each_proxy() -> None:
    """Of apify/crawlee#1912: a broken proxy for the first URL ends the crawl, as its retries use the same one."""
    options = ProxiesOptions()
    pool = ProxyPool([("any", f"http://{name}.test") for name in "abc"], options, lambda *_: None, lambda *_: None)
    url = named("http://site.test/robots.txt")
    asked = Request(url.text, "192.0.2.1", 80)

    def used() -> str:
        return pool.route(url, asked, 0.0).proxy

    first, again, second, *rest = [used() for _ in range(7)]
    assert (first, len({first, second, rest[1]})) == (again, 3)
    assert rest[-1] == first, "all have been tried"
    pool.received(url, reply(b"", 502), 0.0)
    used()
    other = used()
    assert other != first, "the proxy itself says that it does not reach the site"
    pool.received(url, reply(b"", 404), 0.0)
    assert {used() for _ in range(9)} == {other}


def failing_proxy(works: SmallProxy, user: str = "", *, listens: bool = True) -> SmallProxy:
    """Return a proxy that is the first choice of at least two sites: which one a site gets depends on their ports."""
    while True:
        fails = SmallProxy(works.target, user=user, listens=listens)
        sites = {site_of(host) for host in HOSTS}
        chosen = [
            site for site in sites if crc32(f"{site} {fails.url}".encode()) < crc32(f"{site} {works.url}".encode())
        ]
        if 2 <= len(chosen) < len(sites):
            return fails
        fails.server_close()


@pytest.mark.promise("Operation", "A proxy of a pool that fails is left out for a while, and status names it.")
def test_a_proxy_that_fails_is_left_out(tmp_path: Path) -> None:
    sites = Sites()
    works = SmallProxy(sites.server_port)
    fails = failing_proxy(works, user="me:s3cretXYZZY@", listens=False)
    with serving(sites, works), fails:
        found = crawled(tmp_path / "crawl", sites, f"any=['{works.url}', '{fails.url}']")
    assert found.end == "finished", found.critical()
    assert Counter(row["outcome"] for row in found.rows)["fetched"] == len(HOSTS) * PAGES
    assert all(row["attempt"] == 1 for row in found.rows), "a proxy's failure costs no attempt"
    at = fails.url.rpartition("@")[2]
    [note] = [note for note in found.notes if "left out" in note]
    assert note.startswith(f"the proxy any {at} is left out for a while: Failed to connect to the proxy {at}")
    warnings = found.status["warnings"]
    assert isinstance(warnings, list)
    assert note in warnings
    status = read_status(found.status)
    assert status.proxy_answers == {f"any {at}": 0, f"any {works.url.rpartition('/')[2]}": sum(sites.got.values())}
    assert list(status.proxy_failures) == [f"any {at}"]
    [failing] = status.proxies_failing
    assert (failing.proxy, failing.until - failing.since >= 30.0) == (f"any {at}", True)
    assert status.answers == sum(sites.got.values()), "neither a proxy nor a kept connection that closed is an answer"
    assert f"any {at}: 0 answered, 1 failed; left out since" in status_text(status)
    assert not [place for place, data in contents(tmp_path / "crawl") if b"s3cretXYZZY" in data and "toml" not in place]


@pytest.mark.parametrize(
    ("answer", "resolves"),
    [(b"HTTP/1.1 502 Bad Gateway", "true"), (b"HTTP/1.1 502 Bad Gateway", "false"), (b"HTTP/1.1 403 No", "false")],
)
def test_a_proxy_that_reaches_no_host_is_left_out_while_others_do(tmp_path: Path, answer: bytes, resolves: str) -> None:
    sites = Sites()
    works = SmallProxy(sites.server_port)
    fails = failing_proxy(works)
    fails.answers = answer + b"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    with serving(sites, works, fails):
        found = crawled(
            tmp_path / "crawl", sites, f"any=['{works.url}', '{fails.url}']", f"fetch.proxy_resolves={resolves}",
            "robots.retry_first_s=0.1", "robots.retry_s_max=0.1", "frontier.retry_s_first=0.1",
        )  # fmt: skip
    assert found.end == "finished", found.critical()
    assert Counter(row["outcome"] for row in found.rows)["fetched"] == len(HOSTS) * PAGES
    at = fails.url.rpartition("/")[2]
    [note] = [note for note in found.notes if "left out" in note]
    assert note.startswith(f"the proxy any {at} is left out for a while: the proxy has reached no host ({at}): ")


FAILING = {
    "unavailable": b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
    "gateway": b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
    "not HTTP": b"\n",
    "login": b"HTTP/1.1 407 Login\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
}


@pytest.mark.parametrize("answer", FAILING)
@pytest.mark.parametrize("failing", [3, 5])
def test_a_site_alone_is_tried_through_all_proxies(tmp_path: Path, answer: str, failing: int) -> None:
    sites = Sites()
    pool = sorted(
        (SmallProxy(sites.server_port) for _ in range(5)), key=lambda one: crc32(f"a.test {one.url}".encode())
    )
    for one in pool[:failing]:
        one.answers = FAILING[answer]
    with serving(sites, *pool):
        urls = ", ".join(f"'{one.url}'" for one in pool)
        hosts = tmp_path / "hosts"
        hosts.write_text("127.0.0.1 a.test\n")
        found = crawl(
            (f"http://a.test:{sites.server_port}/",), tmp_path / "crawl", *OWN, "robots.obey=false",
            f"resolve.hosts_file={hosts}", "fetch.proxy_resolves=true", f"proxies.urls={{any=[{urls}]}}",
            "frontier.attempts_max=1", "crawl.patience_s=1", scope="prefix",
        )  # fmt: skip
    left_out = [note for note in found.notes if "left out" in note]
    if failing < len(pool):
        assert Counter(row["outcome"] for row in found.rows)["fetched"] == PAGES
        assert len(left_out) == failing
    elif answer == "login":
        assert (found.end, found.rows) == ("patience", [])
    else:  # The last one is not blamed: no proxy reaches the site, which may be down.
        assert (found.end, len(found.rows)) == ("finished", 1)
        assert len(left_out) == len(pool) - 1


def test_a_retry_after_holds_whatever_the_proxy(tmp_path: Path) -> None:
    sites = Sites()
    pool = [SmallProxy(sites.server_port) for _ in range(3)]
    with serving(sites, *pool):
        urls = ", ".join(f"'{one.url}'" for one in pool)
        found = crawled(tmp_path / "crawl", sites, f"any=[{urls}]", "crawl.patience_s=1", paths="busy")
    assert found.end == "patience"
    assert {key: count for key, count in sites.got.items() if "busy" in key} == {f"{host}/busy": 1 for host in HOSTS}


def test_what_cannot_be_a_pool_is_refused(tmp_path: Path) -> None:
    for sets, complaint in (
        (("proxies.urls={de=['nonsense://x']}",), "proxies.urls.de is not the URL of a proxy; write http://HOST:PORT"),
        (("proxies.urls={de=['env:NO_SUCH_PROXY']}",), "the environment variable NO_SUCH_PROXY is not set"),
        (("proxies.urls={de=['http://p:1']}", "proxies.places={'.fr'='fr'}"), "fr has the label 'fr'"),
        (("proxies.urls={de=[]}",), "urls: de has no proxy; add one"),
        *(
            (("proxies.urls={de=['http://p:1']}", f"proxies.places={{'{place}'='de'}}"), f"{place}' is no host's name")
            for place in ("https://a.de/", "Example.de", "münchen.de")
        ),
        (("proxies.urls={de='http://u:p@q:1'}",), r"is .\[redacted\]., expected a list, such as \[.a., .b.\]$"),
        (
            ("proxies.urls={de=['http://p:1']}", "fetch.proxy=http://q:1"),
            "fetch.proxy, and proxy in .request., exclude a",
        ),
    ):
        with pytest.raises(ConfigError, match=complaint):
            crawl(("http://ours.test/",), tmp_path / "crawl", *sets, contact="a@b.c")
