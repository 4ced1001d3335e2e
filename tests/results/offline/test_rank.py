"""PageRank of a crawl's links: equal to a dense solution, within memory, used by crawls and segments."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from gossamer.model.errors import ConfigError
from gossamer.model.links import Link
from gossamer.results.offline import rank as ranking
from gossamer.results.offline.rank import Ranking, RankOptions, levels_of, pagerank, rank
from gossamer.stages.frontier.priority import RANKS_FILE, ByRank
from gossamer.world.process import DirectoryLock
from tests.commands import run
from tests.ring.crawls import OWN, crawl
from tests.ring.test_seeds import Site, website
from tests.stages.frontier.names import named

PAGES = 30
HOSTS = "ab"


def solved(edges: set[tuple[int, int]], count: int, damping: float = 0.85) -> np.ndarray:
    """Return the scores by solving the linear equations; nodes without links give to all alike."""
    matrix = np.zeros((count, count))
    for source, target in edges:
        matrix[target, source] = 1.0
    out = matrix.sum(axis=0)
    matrix = np.where(out > 0, matrix / np.where(out > 0, out, 1), 1 / count)
    scores = np.linalg.solve(np.eye(count) - damping * matrix, np.full(count, (1 - damping) / count))
    return np.asarray(scores * count)


def ranked(edges: set[tuple[int, int]], count: int, *, step: int = 7) -> np.ndarray:
    coded = np.array(sorted(source << 32 | target for source, target in edges), np.int64)
    out = np.bincount(coded >> 32, minlength=count)

    def chunks() -> Iterator[np.ndarray]:
        yield from (coded[at : at + step] for at in range(0, len(coded), step))

    return pagerank(chunks, out, 0.85)[0]


@pytest.mark.parametrize("seed", range(5))
def test_scores_are_those_of_the_linear_equations(seed: int) -> None:
    dice = np.random.default_rng(seed)
    count = 40
    edges = {(int(a), int(b)) for a, b in dice.integers(0, count, (90, 2)) if a != b and a >= 8}
    scores = ranked(edges, count)
    assert scores == pytest.approx(solved(edges, count), abs=1e-7)
    assert scores.mean() == pytest.approx(1.0)
    assert np.array_equal(scores, ranked(edges, count)), "equal links give equal bits"


def test_levels_begin_at_four_for_the_mean_and_leave_seeds_and_unknown_urls_theirs() -> None:
    assert levels_of(np.array([0.0, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 1e6])).tolist() == [6, 6, 6, 5, 4, 3, 2, 1, 1]


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Site]]:
    """Thirty pages: each links to the next, to a third of itself, twice to the first, and to a missing page."""
    folder = tmp_path_factory.mktemp("rank")
    (folder / "hosts").write_text("127.0.0.1 a.test\n127.0.0.1 b.test\n")
    with website() as site:
        for page in range(PAGES):
            own = f"http://{HOSTS[page % 2]}.test/{page}"
            targets = [(page + 1) % PAGES, page // 3, 0, 0, 1_000 + page % 4]
            links = "".join(f'<a href="{site.url(f"http://{HOSTS[to % 2]}.test/{to}")}">x</a>' for to in targets)
            silent = f'<a rel="nofollow" href="/secret">x</a><img src="/i.png"><a href="{site.url(own)}">me</a>'
            site.pages[own] = links + silent
        sets = (*OWN, "archive.links=true")
        seeds = (site.url("http://a.test/0"),)
        done = crawl(seeds, folder / "crawl", *sets, hosts=str(folder / "hosts"), scope="any")
        assert done.end == "finished"
        yield folder / "crawl", site


def edges_of(directory: Path) -> set[tuple[str, str]]:
    rows = [row for file in (directory / "links").glob("*.parquet") for row in pq.read_table(file).to_pylist()]
    counted = (row for row in rows if row["link_type"] == "anchor" and not row["nofollow"])
    return {(row["from_url"], row["to_key"]) for row in counted if row["from_url"] != row["to_key"]}


@pytest.mark.promise(
    "Order and fairness", "gossamer rank computes the PageRank of every URL that a crawl's links name."
)
def test_the_ranks_of_a_crawl_are_those_of_its_table_of_links(
    crawled: tuple[Path, Site], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory, _ = crawled
    monkeypatch.setattr(ranking, "CHUNK", 16)
    made = rank(directory, RankOptions(tmp_path / "ranks", first=100))
    edges = edges_of(directory)
    names = sorted({name for edge in edges for name in edge})
    numbers = {name: number for number, name in enumerate(names)}
    expected = solved({(numbers[a], numbers[b]) for a, b in edges}, len(names))
    assert (made.urls, made.links) == (len(names), len(edges))
    assert {one.url: one.score for one in made.first} == pytest.approx(
        dict(zip(names, expected, strict=True)), abs=1e-6
    )
    assert [one.score for one in made.first] == sorted((one.score for one in made.first), reverse=True)
    first = (tmp_path / "ranks").read_bytes()
    for left in (".rank-killed", ".rank-running"):
        (tmp_path / left).mkdir()
        (tmp_path / left / "pairs").touch()
    with DirectoryLock(tmp_path / ".rank-running") as lock:
        assert lock.acquire(0.0)
        rank(directory, RankOptions(tmp_path / "ranks"))
    assert {path.name for path in tmp_path.iterdir()} == {"ranks", ".rank-running"}
    assert (tmp_path / "ranks").read_bytes() == first
    order = ByRank(first)
    assert {one.url: one.level for one in made.first} == {
        one.url: order.level(Link(named(one.url), "anchor", 1)) for one in made.first
    }
    assert order.level(Link(named("http://a.test/unknown"), "anchor", 1)) == 7
    assert order.level(Link(named(made.first[0].url), "seed", 0)) == 0


def test_the_command_prints_the_best_and_later_crawls_and_segments_use_the_file(
    crawled: tuple[Path, Site], tmp_path: Path
) -> None:
    directory, site = crawled
    status, out, err = run("rank", str(directory), "--limit", "2", "--quiet")
    assert (status, err) == (0, "")
    assert out.splitlines()[0].split()[2] == site.url("http://a.test/0")
    told = json.loads(run("rank", str(directory), "--json", "--quiet")[1])
    made = Ranking(**told)
    assert (made.path, made.urls) == (str(directory / RANKS_FILE), PAGES + 4)
    use = ("frontier.priority=rank", f"frontier.ranks_file={directory / RANKS_FILE}")
    one = tmp_path / "one"
    done = crawl(
        (site.url("http://a.test/0"),), one, *OWN, *use, "archive.links=true",
        hosts=str(directory.parent / "hosts"), scope="any", max_pages=2,
    )  # fmt: skip
    assert done.end == "limit"
    segment = tmp_path / "next.parquet"
    assert run("segment", "build", str(one), "-o", str(segment), "--quiet")[0] == 0
    levels = {row["url"]: row["level"] for row in pq.read_table(segment).to_pylist()}
    known = {row["url"]: row["level"] for row in told["first"]}
    shared = levels.keys() & known.keys()
    assert shared
    assert {url: levels[url] for url in shared} == {url: known[url] for url in shared}


def test_what_cannot_be_ranked_is_refused_in_one_line(crawled: tuple[Path, Site], tmp_path: Path) -> None:
    directory, _ = crawled
    with pytest.raises(ConfigError, match=r"--memory: \d+ URLs or more take 252 MiB; allow that"):
        rank(directory, RankOptions(tmp_path / "ranks", memory_bytes_max=1 << 20))
    assert list(tmp_path.iterdir()) == []
    assert run("rank", str(directory), "--damping", "1")[2].startswith("gossamer: --damping 1: expected a share")
    assert run("rank", str(directory), "--limit", "-1")[2].startswith("gossamer: --limit -1: expected a number")
    said = run("rank", str(directory), "-o", "/proc/ranks.bin")[2]
    assert said == "gossamer: cannot write to /proc/ranks.bin: No such file or directory; name another with -o\n"
    assert run("rank", str(directory), "-o", str(tmp_path))[2].endswith("is a directory; name a file with -o\n")
    for key, says in (
        ("frontier.level_bias=2", "set frontier.ranks_file to a file of gossamer rank"),
        (f"frontier.ranks_file={tmp_path}/none", "No such file or directory; make it with gossamer rank DIR"),
        (f"frontier.ranks_file={directory}/crawl.toml", "it is no file of gossamer rank; make it with gossamer rank"),
    ):
        with pytest.raises(ConfigError, match=says):
            crawl(("http://a.test/",), tmp_path / "no", "frontier.priority=rank", key, contact="me@example.org")
