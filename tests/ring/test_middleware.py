"""Middleware of the operator's own, as in `examples/middleware.py`: through a crawl, a kill and its continuation."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest

from gossamer.model.errors import ComponentError, ConfigError
from tests.answering import Answering, serving
from tests.ring.crawls import OWN, command_line, crawl, rows, until

EXAMPLE = Path(__file__).parents[2] / "examples/middleware.py"
PAGES = 40
VALID = 7
"""Requests for which a token is valid."""


class Shop(ThreadingHTTPServer):
    """Pages that need a token, which is valid for some requests."""

    daemon_threads = True

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self.times: dict[str, int] = {}
        self.wrong: list[str] = []
        shop = self

        class Handler(Answering):
            def get(self) -> None:
                shop.asked[self.path] += 1
                if self.path == "/robots.txt":
                    self.answer(404)
                elif self.path == "/token":
                    token = f"t{shop.asked[self.path]}"
                    shop.times[token] = 0
                    self.answer(200, json.dumps({"token": token}).encode(), media_type="application/json")
                else:
                    self.page(self.headers.get("Authorization", "").removeprefix("Bearer "))

            def page(self, token: str) -> None:
                if token not in shop.times:
                    shop.wrong.append(self.path)
                shop.times[token] = shop.times.get(token, 0) + 1
                if shop.times[token] > VALID:
                    self.answer(401)
                    return
                number = int(self.path.removeprefix("/") or 0)
                links = (2 * number + 1, 2 * number + 2)
                self.answer(200, "".join(f"<a href=/{n}>n</a>" for n in links if n < PAGES).encode())

        super().__init__(("127.0.0.1", 0), Handler)
        self.root = f"http://127.0.0.1:{self.server_port}/"


@pytest.fixture
def shop() -> Iterator[Shop]:
    server = Shop()
    with serving(server):
        yield server


def own(folder: Path, *names: str, more: str = "") -> str:
    """Return the setting that names classes of the example, in a copy of it with more."""
    file = folder / "own.py"
    file.write_text(EXAMPLE.read_text() + more)
    return f"components.middleware={json.dumps([f'{file}:{name}' for name in names])}"


@pytest.mark.promise(
    "Operation", "Middleware of your own can hold back, change and repeat requests; its state is durable."
)
def test_a_token_is_renewed_and_outlives_a_kill(shop: Shop, tmp_path: Path) -> None:
    with command_line(tmp_path / "c") as running:
        running.crawl((shop.root,), *OWN, "politeness.delay_s_min=0.08", own(tmp_path, "RenewedToken"))
        until(lambda: shop.asked.total() > PAGES // 8)
        running.until_commit()
        running.kill_child()
        assert running.wait() == 0, running.says()
    found = [str(row["url"]) for row in rows(tmp_path / "c/pages") if row["outcome"] == "fetched"]
    assert sorted(found) == sorted(shop.root + (str(n) if n else "") for n in range(PAGES))
    assert shop.wrong == [], "no page is requested without a token that was issued"
    assert shop.asked["/token"] == len(shop.times) <= PAGES


def test_a_path_has_a_delay_and_others_have_none(shop: Shop, tmp_path: Path) -> None:
    slow = "\n\nclass Slow(SlowPath):\n    path = '/3'\n    delay_s = 0.4\n"
    # With more requests at once than a token is valid for, the same page can have the bad luck again and again.
    sets = (*OWN, "politeness.per_host=4", own(tmp_path, "RenewedToken", "Slow", more=slow))
    crawled = crawl((shop.root,), tmp_path / "c", *sets)
    outcomes = {str(row["outcome"]) for row in crawled.rows}
    assert outcomes <= {"fetched", "login_required"}, "a token that another page renewed costs no page"
    at = sorted(
        float(row["fetched_at"].timestamp()) for row in crawled.rows if str(row["key"]).split("/")[-1][:1] == "3"
    )
    assert len(at) >= 11, "/3 and /30 to /39"
    # A request may begin late, but without the delay all would take a tenth of this.
    assert at[-1] - at[0] >= 0.2 * (len(at) - 1)


class Through(Answering):
    """A proxy that answers itself."""

    def get(self) -> None:
        hosts: dict[str, int] = self.server.hosts  # type: ignore[attr-defined]
        host = self.path.split("/")[2]
        hosts[host] = hosts.get(host, 0) + 1
        self.answer(404 if self.path.endswith("robots.txt") else 200, b"<a href=/2>2</a>")


def test_all_requests_to_a_host_go_through_the_same_proxy(tmp_path: Path) -> None:
    proxies = [ThreadingHTTPServer(("127.0.0.1", 0), Through) for _ in range(2)]
    for proxy in proxies:
        proxy.hosts = {}  # type: ignore[attr-defined]
    names = [f"h{n}.test" for n in range(6)]
    hosts = tmp_path / "hosts"
    hosts.write_text("".join(f"127.0.0.1 {name}\n" for name in names))
    urls = tuple(f"http://127.0.0.1:{proxy.server_port}" for proxy in proxies)
    through = f"\n\nclass Through(SessionProxies):\n    proxies = {urls!r}\n"
    with serving(*proxies):
        seeds = tuple(f"http://{name}/" for name in names)
        crawled = crawl(seeds, tmp_path / "c", *OWN, own(tmp_path, "Through", more=through), hosts=str(hosts))
    assert len([row for row in crawled.rows if row["outcome"] == "fetched"]) == 2 * len(names)
    first, second = (proxy.hosts for proxy in proxies)  # type: ignore[attr-defined]
    assert set(first) | set(second) == set(names)
    assert not set(first) & set(second)
    assert first
    assert second


CODE = "\n\nclass Own{base}:\n    {body}\n"


@pytest.mark.parametrize(
    ("base", "body", "error"),
    [
        ("", "name = 'x'\n    def __init__(self, **_): pass", "must derive from gossamer.ports.VisitMiddleware"),
        ("(VisitMiddleware)", "def __init__(self, **_): pass", "and have a name"),
        ("(VisitMiddleware)", "name = 'x'\n    def __init__(self): pass", "must take"),
    ],
)
def test_a_middleware_that_does_not_fit_is_refused(tmp_path: Path, base: str, body: str, error: str) -> None:
    with pytest.raises(ConfigError, match=error):
        crawl(("http://127.0.0.1:1/",), tmp_path / "c", own(tmp_path, "Own", more=CODE.format(base=base, body=body)))


@pytest.mark.parametrize(
    ("method", "says"),
    [
        ("def judge(self, url, now): 1 / 0", "failed in judge"),
        (
            "def request(self, *given): return type(given[2])(given[2].url, '::1', 1) if given[1] else given[2]",
            "changed the address",
        ),
        ("def received(self, url, reply, now): return reply if 'robots' in url.text else 1 / 0", "failed in received"),
        ("def concluded(self, visited, now): 1 / 0", "failed in concluded"),
    ],
)
def test_a_mistake_in_one_ends_the_page_and_is_named(shop: Shop, tmp_path: Path, method: str, says: str) -> None:
    more = CODE.format(base="(VisitMiddleware)", body=f"name = 'x'\n    {method}")
    crawled = crawl((shop.root,), tmp_path / "c", *OWN, own(tmp_path, "Own", more=more), "crawl.errors_max=100")
    assert says in crawled.critical()
    assert crawled.status["discovered"] == crawled.status["terminal"]


@pytest.mark.parametrize("body", ["1 / 0", "request.headers"])
def test_one_that_fails_for_robots_txt_before_the_first_attempt_ends_the_crawl(
    shop: Shop, tmp_path: Path, body: str
) -> None:
    """Each host would wait for its robots.txt, an hour in all."""
    method = f"name = 'x'\n    def request(self, url, visit, request, now): {body}"
    settings = own(tmp_path, "Own", more=CODE.format(base="(VisitMiddleware)", body=method))
    with pytest.raises(ComponentError, match=r"own.py:Own failed in request \(.*robots.txt\)"):
        crawl((shop.root,), tmp_path / "c", *OWN, settings)
    assert not shop.asked
