"""What a crawl of one shard offers, in crawls of two: few hosts left, seeds by a pipe, search while it
runs, pages in a Python program, the status of a continuous crawl, and shards without work.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from textwrap import indent

import pytest

from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.process import SimwebProcess
from tests.acceptance.test_workers import QUICK, answer, begun, crawl_of, gossamer
from tests.api.test_docs import ROOT, fenced
from tests.crash.crawls import environment
from tests.crash.harvest import Harvest
from tests.ring.crawls import until
from tests.ring.test_seeds import Site, website

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(300)]

SMALL = [f"h{number}.test" for number in range(6)]
LARGE_PAGES = 40
WEB = SimwebOptions(
    seed=4,
    hosts=12,
    hosts_per_site=1,
    pages=120,
    latency_s=0.01,
    bytes_median=2_000,
    behaviours=("redirects", "copies", "compressed"),
)
READ = """
import asyncio, os, signal, sys
from pathlib import Path
from gossamer.api import ClusterCrawler

killed = set()  # One that was killed a moment ago may be there yet.

def kill_one():
    for path in Path("/proc").iterdir():
        try:
            words = (path / "cmdline").read_bytes().split(b"\\0") if path.name.isdigit() else []
            if b"gossamer.api.member" in words and path.name not in killed and own(int(path.name)):
                os.kill(int(path.name), signal.SIGKILL)
                killed.add(path.name)
                return
        except OSError:  # It ended meanwhile.
            continue

def own(pid):
    while pid > 1 and pid != os.getpid():
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return pid == os.getpid()

async def main():
    directory, *seeds = sys.argv[1:]
    crawler = ClusterCrawler(seeds, output=directory, workers=2, allow_private=True, hosts=os.environ["HOSTS"],
                             scope="any", delay=0.2, politeness="weak", quiet=True)
    read = 0
    async with crawler:
        async for page in crawler:
            read += 1
            is_archived = (page.outcome, page.row.warc_type) == ("fetched", "response")
            is_whole = not is_archived or len(page.body) == page.row.body_bytes
            print(page.row.key, is_whole, len(page.links), flush=True)
            if read in (10, 40):
                kill_one()
    print(crawler.status()["ended"], sum(one.get("deaths", 0) for one in crawler.status()["shards"]))

asyncio.run(main())
"""


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """Six hosts of one page each, and one of forty."""
    with website() as found:
        found.pages = {f"http://{host}/": f"<title>{host}</title>small" for host in SMALL}
        found.pages |= {f"http://large.test/{number}": "page" for number in range(1, LARGE_PAGES)}
        found.pages["http://large.test/"] = "".join(f'<a href="/{number}">x</a>' for number in range(1, LARGE_PAGES))
        (tmp_path / "hosts").write_text("127.0.0.1 " + " ".join([*SMALL, "large.test"]) + "\n")
        yield found


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimwebProcess]:
    with SimwebProcess(WEB, tmp_path_factory.mktemp("web")) as served:
        yield served


def words_of(tmp_path: Path, *sets: str) -> list[str]:
    words = ["-o", str(tmp_path / "crawl"), "--hosts", str(tmp_path / "hosts"), "--allow-private", "--workers", "2"]
    return words + [word for one in (*QUICK, "politeness.delay_s_min=0.2", *sets) for word in ("--set", one)]


def addresses(site: Site) -> list[str]:
    return [site.url(f"http://{host}/") for host in ["large.test", *SMALL]]


@pytest.mark.promise("Several shards", "With few hosts left in all shards, a crawl stops and saves the rest.")
@pytest.mark.long
def test_with_few_hosts_left_the_crawl_stops_and_resumes_to_its_end(site: Site, tmp_path: Path) -> None:
    directory = tmp_path / "crawl"
    done = gossamer("crawl", *addresses(site), *words_of(tmp_path, "frontier.hosts_min=3", "politeness.delay_s_min=1"))
    assert done.returncode == 0, done.stderr
    assert "ended with few hosts left, the rest saved" in done.stdout
    assert "frontier.hosts_min = 3; the rest is saved" in done.stdout
    status = answer("status", directory)
    assert (status["state"], status["ended"]) == ("stopped", "low_water")
    assert 0 < int(str(status["hosts_left"])) < 3
    assert "frontier.hosts_min = 3" in str(status["waiting_for"])
    pages = [url for url in site.asked if not url.endswith("robots.txt")]
    assert 0 < len(pages) < LARGE_PAGES
    resumed = gossamer("resume", directory, "--delay", "0", "--quiet")
    assert resumed.returncode == 0, resumed.stderr
    assert answer("status", directory)["ended"] == "finished"
    pages = [url for url in site.asked if not url.endswith("robots.txt")]
    assert len(pages) == len(set(pages)) == LARGE_PAGES + len(SMALL)


@pytest.mark.long
def test_seeds_come_through_a_pipe_and_pages_are_found_while_the_crawl_runs(site: Site, tmp_path: Path) -> None:
    directory = tmp_path / "crawl"
    sets = ("search.enabled=true", "search.commit_s=0.5", "politeness.delay_s_min=4")
    words = ["crawl", "--seeds", "-", *words_of(tmp_path, *sets)]
    running = subprocess.Popen(
        [sys.executable, "-m", "gossamer", *words], env=environment(), stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    try:
        assert running.stdin is not None
        running.stdin.write("\n".join(addresses(site)))
        running.stdin.close()
        until(lambda: _hits(directory, "small") == set(addresses(site)[1:]) or running.poll() is not None, 120)
        assert running.poll() is None
        assert answer("status", directory)["state"] == "running"
        assert len(list((directory / "search").glob("shard-*"))) == 2
        assert gossamer("stop", directory).returncode == 0
        assert running.wait(60) == 130
    finally:
        running.kill()
        running.wait()
    assert {row["url"] for row in Harvest(directory).rows if row["status"] == 200} >= set(addresses(site))


def _hits(directory: Path, words: str) -> set[str]:
    done = gossamer("search", directory, words, "--json")
    return {one["url"] for one in json.loads(done.stdout)["hits"]} if done.returncode == 0 else set()


@pytest.mark.promise(
    "Several shards", "A program reads the pages of all shards, each once, also when a shard's process is killed."
)
@pytest.mark.long
def test_a_program_reads_each_page_once_while_processes_are_killed(web: SimwebProcess, tmp_path: Path) -> None:
    directory = tmp_path / "crawl"
    done = subprocess.run(
        [sys.executable, "-c", READ, str(directory), *web.seeds], env={**environment(), "HOSTS": str(web.hosts_file)},
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=200,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    *pages, end = [line.split() for line in done.stdout.splitlines()]
    harvest = Harvest(directory)
    assert end == ["finished", "2"]
    assert Counter(key for key, _, _ in pages) == Counter(str(row["key"]) for row in harvest.rows)
    assert sum(int(links) for _, _, links in pages) == harvest.links.total()
    assert {is_whole for _, is_whole, _ in pages} == {"True"}


@pytest.mark.long
def test_the_program_of_the_guide_reads_pages(site: Site, tmp_path: Path) -> None:
    """docs/how-to/cluster.md, with addresses on loopback and two shards."""
    [code] = fenced((ROOT / "docs/how-to/cluster.md").read_text(encoding="utf-8"))
    code = code.replace('["https://docs.example.org/"]', repr(addresses(site)[1:])).replace("workers=4", "workers=2")
    here = f"allow_private=True, hosts={str(tmp_path / 'hosts')!r}, output={str(tmp_path / 'crawl')!r}, quiet=True"
    code = code.replace('contact="me@example.org"', here)
    head, _, body = code.partition("\n\n")
    program = f"import asyncio\n{head}\nasync def main():\n{indent(body, '    ')}\nasyncio.run(main())\n"
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=200,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == sorted(f"{site.url(f'http://{host}/')} 200 {host}" for host in SMALL)


@pytest.mark.long
def test_the_status_of_a_continuous_crawl_is_that_of_all_shards(web: SimwebProcess, tmp_path: Path) -> None:
    directory = tmp_path / "crawl"
    running = begun(*crawl_of(web, directory, 2, "crawl.mode=continuous", "revisit.interval_s_min=1"))
    try:
        until(lambda: _revisited(directory), 90)
        status = answer("status", directory)
        assert (status["mode"], status["workers"]) == ("continuous", 2)
        revisits = status["revisits"]
        assert isinstance(revisits, dict)
        assert revisits["pages"] > 40
        assert len({one["shard"] for one in status["shards"] if one["pages"]}) == 2  # type: ignore[attr-defined]
        said = gossamer("status", directory).stdout
        assert "seen again" in said
        assert "freshness" in said
        assert gossamer("stop", directory).returncode == 0
        assert running.wait(60) == 130
    finally:
        running.kill()
        running.wait()


def _revisited(directory: Path) -> bool:
    """Say whether there were second visits, and each shard had a page: on a busy machine one begins much later."""
    done = gossamer("status", directory, "--json")
    status = json.loads(done.stdout) if done.returncode == 0 else {}
    revisits = status.get("revisits")
    seen_again = bool(revisits and revisits["pages"] > 40 and revisits["visits"])
    return seen_again and all(shard["pages"] for shard in status["shards"])


@pytest.mark.promise("Several shards", "Status and summary name shards that have nothing to fetch.")
@pytest.mark.long
def test_shards_without_work_are_named(site: Site, tmp_path: Path) -> None:
    done = gossamer("crawl", addresses(site)[0], *words_of(tmp_path, "politeness.preset=own"))
    assert done.returncode == 0, done.stderr
    assert "Warning: 1 of 2 shards have nothing to fetch" in done.stdout
    said = gossamer("status", tmp_path / "crawl").stdout
    assert "1 of 2 shards have nothing to fetch" in said
    assert "idle" in said
