"""`why` tells the story of any URL, on a running crawl and on a stopped one; `status` adds up at every moment."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from gossamer import Crawler
from gossamer.api.status import status_of, why_of
from gossamer.config import configure
from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.process import SimwebProcess
from tests.ring.crawls import BRIEF, OWN, crawl, opened
from tests.ring.test_seeds import NAMES, Site, crawled, website


@pytest.fixture
def site() -> Iterator[Site]:
    with website() as site:
        yield site


def test_every_outcome_and_every_rejection_is_reported_after_the_end(site: Site, tmp_path: Path) -> None:
    links = (
        "/ok", "/moved", "/gone", "/private/x", "/excluded.pdf", "http://c.test/", "/r/r/r/r/r", "/" + "x" * 3000,
        "/" + "d/" * 45, "ftp://a.test/", "http://nowhere.test/", "http://refused.test:9/",
    )  # fmt: skip
    site.pages = {
        "http://a.test/": "".join(f'<a href="{link}">x</a>' for link in links)
        + '<link rel="canonical" href="/canonical"><a rel="nofollow" href="/nofollow">x</a>',
        "http://a.test/ok": '<a href="/deep">deep</a>',
        "http://a.test/deep": '<a href="/deeper">deeper</a>',
        "http://a.test/moved": (301, "/ok"),
        "http://a.test/robots.txt": "User-agent: *\nDisallow: /private/\n",
    }
    hosts = f"127.0.0.1 {NAMES} refused.test\n"
    sets = ("scope.exclude=['pdf$']", "scope.path_repeats_max=3", "scope.exclude_hosts=['c.test']")
    result = crawled(site, tmp_path, "http://a.test/", hosts=hosts, sets=sets, scope="any", max_depth=2)
    assert result.end == "finished"

    with opened(tmp_path / "crawl") as known:
        assert_told(lambda text: known(site.url(text) if text.startswith("http://a.test") else text), site)
    assert why_of(tmp_path / "crawl", site.url("http://a.test/"))["state"] == "fetched"


def assert_told(why: Callable[[str], dict[str, object]], site: Site) -> None:
    states = {
        "http://a.test/": "fetched",
        "http://a.test/ok": "fetched",
        "http://a.test/moved": "redirected",
        "http://a.test/gone": "http_error",
        "http://a.test/private/x": "robots_denied",
        "http://nowhere.test/": "dns_error",
    }
    for url, state in states.items():
        told = why(url)
        assert (told["state"], told["rule"]) == (state, state), url
        assert told["reason"], url
    assert why("http://refused.test:9/")["state"] in ("robots_unreachable", "host_closed", "connect_error")
    rules = {
        "http://a.test/excluded.pdf": "exclude",
        "http://c.test/": "excluded_host",
        "http://a.test/r/r/r/r/r": "repeated_path",
        "http://a.test/" + "x" * 3000: "length",
        "http://a.test/" + "d/" * 45: "path_depth",
        "ftp://a.test/": "scheme",
    }
    for url, rule in rules.items():
        told = why(url)
        assert (told["state"], told["rule"]) == ("rejected", rule), url[:40]
        assert rule in str(told["reason"])
    assert why("http://a.test/deep")["depth"] == 2
    for url in ("http://a.test/deeper", "http://a.test/nofollow", "http://a.test/canonical", "http://a.test/never"):
        told = why(url)
        assert (told["state"], told["rule"]) == ("unknown", None), url
        assert told["reason"]
    assert why("no address at all")["state"] == "unknown"
    told = why("http://a.test/moved")
    assert told["redirect_to"] == site.url("http://a.test/ok")
    assert told["referrer"] == site.url("http://a.test/")
    assert told["status"] == 301


async def ask(directory: Path, **request: object) -> dict[str, object]:
    reader, writer = await asyncio.open_unix_connection(str(directory / "state/control.sock"))
    writer.write(json.dumps(request).encode() + b"\n")
    answer = json.loads(await reader.readline())
    writer.close()
    await writer.wait_closed()
    assert answer["ok"], answer
    result: dict[str, object] = answer["result"]
    return result


async def eventually(condition: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(60):
        while not await condition():  # noqa: ASYNC110 - what is asked is another process's business, as for people
            await asyncio.sleep(0.02)


def test_a_running_crawl_tells_what_waits_and_why(tmp_path: Path) -> None:
    """Queued, in flight, waiting for another attempt: over the control socket, then the same after a stop."""
    options = SimwebOptions(
        seed=2,
        hosts=6,
        pages=300,
        behaviours=("errors", "hangs"),
        shares={"errors": 0.4, "hangs": 0.4},
        latency_s=0.002,
    )
    slow = (
        *BRIEF, "politeness.delay_s_min=0.3", "frontier.retry_s_first=30.0", "frontier.retry_s_max=30.0",
        "fetch.request_s_max=30.0", "crawl.stop_s=0.1",
    )  # fmt: skip
    directory = tmp_path / "crawl"

    async def told(simweb: SimwebProcess) -> dict[str, str]:
        web = simweb.web
        retried = next(web.front(host) + "errors/500" for host in web.hosts if "errors" in host.behaviors)
        stalls = next(
            f"{web.front(host)}hangs/{manner}"
            for host in web.hosts
            for manner in ("stall", "drip")
            if web.page(host.name, f"/hangs/{manner}").manner == manner
        )
        seeds = (retried, stalls, *(web.url(web.hosts[0], number) for number in range(1, 40)))
        queued = seeds[-1]
        config = configure(
            options={"allow_private": True, "hosts": str(simweb.hosts_file), "scope": "host"}, sets=slow, seeds=seeds
        )
        crawler = Crawler(output=directory, config=config)
        running = asyncio.create_task(crawler.run())
        seen: dict[str, str] = {}

        async def state(url: str) -> str:
            return str((await ask(directory, verb="why", url=url))["state"])

        async def listening() -> bool:
            return (directory / "state/control.sock").exists()

        async def adds_up() -> None:
            status = await ask(directory, verb="status")
            ended = int(str(status["terminal"]))
            assert status["discovered"] == int(str(status["queued"])) + int(str(status["in_flight"])) + ended, status

        async def waiting() -> bool:
            await adds_up()
            seen[queued] = "queued" if await state(queued) == "queued" else seen.get(queued, "")
            return await state(retried) == "waiting"

        async def flying() -> bool:
            await adds_up()
            return await state(stalls) == "in_flight"

        await eventually(listening)
        await eventually(waiting)
        await eventually(flying)
        why = await ask(directory, verb="why", url=retried)
        assert "HTTP 500" in str(why["reason"])
        assert why["next_due"]
        assert seen[queued] == "queued"
        crawler.stop()
        assert await running == "stopped"
        return {retried: "waiting", stalls: "queued"}

    with SimwebProcess(options, tmp_path / "web") as simweb:
        states = asyncio.run(told(simweb))
    for url, state in states.items():
        told_now = why_of(directory, url)
        assert told_now["state"] == state, told_now
        assert told_now["next_due"]
    status = status_of(directory)
    assert status["discovered"] == int(str(status["queued"])) + int(str(status["terminal"]))
    assert status["state"] == "stopped"


@pytest.mark.heavy
def test_a_name_server_gives_the_same_crawl_as_a_hosts_file(tmp_path: Path) -> None:
    options = SimwebOptions(
        seed=3, hosts=12, pages=80, behaviours=("away", "redirects", "robots_redirect_host"), shares={"away": 0.3},
        links_per_page=8,
    )  # fmt: skip
    ends: list[dict[str, str]] = []
    with SimwebProcess(options, tmp_path / "web") as simweb:
        for number, where in enumerate(({"hosts": str(simweb.hosts_file)}, {"dns": [simweb.dns]})):
            sets = [one for one in OWN if not one.startswith("resolve.servers")]
            result = crawl(simweb.seeds, tmp_path / f"crawl{number}", *sets, *(
                () if "dns" in where else ("resolve.servers=['127.0.0.1:9']",)
            ), scope="any", contact="me@example.org", **where)  # fmt: skip
            ends.append(result.outcomes)
    assert "dns_error" in ends[0].values()
    assert ends[0] == ends[1]
