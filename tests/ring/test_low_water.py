"""Low water: what happens when few hosts are left, in whole crawls and from the command line."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from pathlib import Path

import pytest

import gossamer
from gossamer import Crawler
from gossamer.api import low_water
from gossamer.api.status import status_of
from gossamer.config import configure
from gossamer.config import seeds as seed_rules
from tests.ring.crawls import OWN, crawl
from tests.ring.test_seeds import Site, website

pytestmark = pytest.mark.promise(
    "Order and fairness",
    "With few hosts left, a crawl stops and saves the rest, or requests more seeds; it ends in both cases.",
)

SMALL = [f"h{number}.test" for number in range(5)]
SLOW = ("politeness.delay_s_min=0.15", "politeness.per_host=1")
LARGE_PAGES = 60


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """Five hosts of one page each, and one of sixty."""
    with website() as found:
        found.pages = {f"http://{host}/": "small" for host in [*SMALL, "more.test", "again.test"]}
        found.pages |= {f"http://large.test/{number}": "page" for number in range(1, LARGE_PAGES)}
        found.pages["http://large.test/"] = "".join(f'<a href="/{number}">x</a>' for number in range(1, LARGE_PAGES))
        (tmp_path / "hosts").write_text("127.0.0.1 " + " ".join([*SMALL, "large.test more.test again.test"]) + "\n")
        yield found


def seeds(site: Site) -> tuple[str, ...]:
    return tuple(site.url(f"http://{host}/") for host in ["large.test", *SMALL])


def test_when_few_hosts_are_left_the_crawl_stops_and_resumes_to_its_end(site: Site, tmp_path: Path) -> None:
    crawled = crawl(seeds(site), tmp_path / "crawl", *OWN, *SLOW, "frontier.hosts_min=3", hosts=str(tmp_path / "hosts"))
    assert crawled.end == "low_water"
    asked = len(crawled.rows)
    assert len(SMALL) < asked < LARGE_PAGES
    assert any("frontier.hosts_min" in note for note in crawled.notes)
    status = status_of(tmp_path / "crawl")
    assert (status["state"], status["ended"]) == ("stopped", "low_water")
    assert status["hosts_left"] == 1
    assert "fewer hosts than frontier.hosts_min = 3" in str(status["waiting_for"])
    # Resumed it never has three hosts, so it goes on to the end.
    resumed = crawl((), tmp_path / "crawl", "politeness.delay_s_min=0.0", resuming=True)
    assert resumed.end == "finished"
    assert len(resumed.rows) == LARGE_PAGES + len(SMALL)
    assert len(set(site.asked)) == len(site.asked), "and nothing was fetched twice"


@pytest.mark.heavy
def test_the_command_line_says_so_and_ends_with_0(site: Site, tmp_path: Path) -> None:
    sets = [part for text in (*OWN, *SLOW, "frontier.hosts_min=3") for part in ("--set", text)]
    options = ["-o", str(tmp_path / "crawl"), "--hosts", str(tmp_path / "hosts"), "--allow-private"]
    command = [sys.executable, "-m", "gossamer"]
    environment = {**os.environ, "PYTHONPATH": str(Path(gossamer.__file__).parents[1])}
    ran = subprocess.run(
        [*command, "crawl", *seeds(site), *options, *sets], env=environment, capture_output=True, text=True, timeout=60
    )
    assert ran.returncode == 0, ran.stderr
    assert "ended with few hosts left, the rest saved" in ran.stdout
    assert "gossamer resume" in ran.stdout
    told = subprocess.run(
        [*command, "status", str(tmp_path / "crawl")], env=environment, capture_output=True, text=True, timeout=60
    )
    assert "fewer hosts than frontier.hosts_min = 3" in told.stdout


def test_a_crawl_that_never_had_so_many_hosts_goes_on_to_its_end(site: Site, tmp_path: Path) -> None:
    crawled = crawl(seeds(site), tmp_path / "crawl", *OWN, "frontier.hosts_min=50", hosts=str(tmp_path / "hosts"))
    assert crawled.end == "finished"
    assert len(crawled.rows) == LARGE_PAGES + len(SMALL)


def script(tmp_path: Path, *lines: str) -> str:
    """Write a command that prints one line at each call, and nothing when they are at an end."""
    (tmp_path / "lines").write_text("".join(f"{line}\n" for line in lines))
    (tmp_path / "more.sh").write_text(
        f'echo "$GOSSAMER_DIRECTORY" >> {tmp_path}/calls\nhead -n 1 {tmp_path}/lines\nsed -i 1d {tmp_path}/lines\n'
    )
    return f"frontier.more_seeds_command=['sh', '{tmp_path}/more.sh']"


def test_a_command_is_asked_for_more_seeds_as_long_as_it_has_new_ones(site: Site, tmp_path: Path) -> None:
    more, again = site.url("http://more.test/"), site.url("http://again.test/")
    command = script(tmp_path, f"{more}  # a comment", again, "# only a comment")
    hosts = str(tmp_path / "hosts")
    crawled = crawl((site.url("http://h0.test/"),), tmp_path / "crawl", *OWN, command, hosts=hosts)
    assert crawled.end == "finished"
    assert sorted(str(row["url"]) for row in crawled.rows) == sorted([site.url("http://h0.test/"), more, again])
    assert (tmp_path / "calls").read_text().splitlines() == [str(tmp_path / "crawl")] * 3
    assert any("there are no more seeds" in note for note in crawled.notes)


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("['sh', '-c', 'echo http://h1.test/; exit 3']", "ended with status 3"),
        ("['sh', '-c', 'sleep 60']", "took more than"),
        ("['/no/such/command']", "No such file"),
        ("['sh', '-c', 'echo no address; echo ftp://h1.test/']", "there are no more seeds"),
    ],
)
def test_a_command_that_fails_ends_nothing(site: Site, tmp_path: Path, command: str, said: str) -> None:
    limit_s = 0.5 if "took" in said else 60.0
    crawled = crawl(
        (site.url("http://h0.test/"),), tmp_path / "crawl", *OWN, f"frontier.more_seeds_command={command}",
        f"frontier.more_seeds_s_max={limit_s}", hosts=str(tmp_path / "hosts"),
    )  # fmt: skip
    assert crawled.end == "finished"
    assert len(crawled.rows) == 1
    assert any(said in note for note in crawled.notes), crawled.notes


def asking(site: Site, tmp_path: Path, more: Callable[[], Awaitable[Iterable[str]]]) -> Crawler:
    """Return a crawl of one page that asks a program for more."""
    config = configure(
        options={"allow_private": True, "hosts": str(tmp_path / "hosts")},
        sets=OWN,
        seeds=(site.url("http://h0.test/"),),
    )
    return Crawler(output=tmp_path / "crawl", config=config, more_seeds=more)


def test_a_program_may_bring_more_seeds(site: Site, tmp_path: Path) -> None:
    batches = [[site.url("http://h1.test/"), site.url("http://h2.test/")], [site.url("http://more.test/")]]

    async def more() -> Iterable[str]:
        return batches.pop(0) if batches else []

    crawler = asking(site, tmp_path, more)
    assert asyncio.run(crawler.run()) == "finished"
    assert crawler.status()["pages"] == 4


@pytest.mark.heavy
def test_the_crawl_goes_on_while_many_seeds_are_taken_in(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between two steps whoever else runs has a turn, and the hosts file is not read for every seed."""
    named, read, seen = 0, 0, set()
    name, names = low_water.seed_url, seed_rules.local_names

    def counted(text: str, schemes: Sequence[str]) -> str:
        nonlocal named
        named += 1
        return name(text, schemes)

    def reading(path: Path) -> frozenset[str]:
        nonlocal read
        read += 1
        return names(path)

    async def look() -> None:
        while True:
            seen.add(named)
            await asyncio.sleep(0)

    batches = [[site.url(f"http://h1.test/{number}") for number in range(2_000)]]

    async def more() -> Iterable[str]:
        nonlocal read
        if not looking:
            looking.append(asyncio.ensure_future(look()))
            read = 0
        return batches.pop(0) if batches else []

    looking: list[asyncio.Future[None]] = []
    monkeypatch.setattr(low_water, "seed_url", counted)
    monkeypatch.setattr(seed_rules, "local_names", reading)
    crawler = asking(site, tmp_path, more)
    assert asyncio.run(crawler.run()) == "finished"
    assert named == 2_000
    assert len(seen) >= 2_000 // low_water.SEEDS_A_STEP_MAX
    assert read == 2, "once for each answer, the empty one that ended it included"


def test_of_an_answer_that_is_nonsense_the_log_has_the_beginning(site: Site, tmp_path: Path) -> None:
    command = "frontier.more_seeds_command=['seq', '100']"
    crawled = crawl((site.url("http://h0.test/"),), tmp_path / "crawl", *OWN, command, hosts=str(tmp_path / "hosts"))
    assert crawled.end == "finished"
    log = (tmp_path / "crawl/logs/info.log").read_text()
    assert log.count("seed_refused") == low_water.REFUSED_SHOWN_MAX
    assert any("100 of 100 more seeds refused" in note for note in crawled.notes)


def test_a_command_that_prints_without_end_is_cut_off(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(low_water, "OUTPUT_BYTES_MAX", 1 << 16)
    command = f"frontier.more_seeds_command=['yes', '{site.url('http://h1.test/')}']"
    crawled = crawl((site.url("http://h0.test/"),), tmp_path / "crawl", *OWN, command, hosts=str(tmp_path / "hosts"))
    assert crawled.end == "finished"
    assert len(crawled.rows) == 2
    assert any("yes prints without end" in note for note in crawled.notes)
    assert not any("refused" in note for note in crawled.notes), "the last line, which was cut, is left out"


@pytest.mark.parametrize("text", ["http://93.184.216.34/", "http://elsewhere.example/"])
def test_more_seeds_are_looked_at_as_the_first_ones_were(site: Site, tmp_path: Path, text: str) -> None:
    """Without a contact the public web is not visited, whoever brings the address."""
    command = f"frontier.more_seeds_command=['echo', '{text}']"
    crawled = crawl((site.url("http://h0.test/"),), tmp_path / "crawl", *OWN, command, hosts=str(tmp_path / "hosts"))
    assert (crawled.end, len(crawled.rows)) == ("finished", 1)
    assert "crawlers say who they are" in (tmp_path / "crawl/logs/info.log").read_text()
