"""`gossamer forget` killed at any step: repeating the command finishes it, as if nothing had been."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from gossamer.api import verify_of
from tests.crash.forks import Forks, forks
from tests.results.forget import marks
from tests.results.forget.crawls import AGAIN, crawled, payloads
from tests.results.forget.site import GONE, MARKS, Site
from tests.ring.crawls import rows
from tests.sampled import FIRST_STEP, STEP
from tests.stages.archive import strict

pytestmark = pytest.mark.promise(
    "Crash safety",
    "A killed `gossamer forget` can be repeated from any step; until then the crawl does not "
    "run, and `status` and `verify` say so.",
)


@pytest.fixture(scope="module")
def crawl(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A crawl with a checkpoint of its own in it."""
    folder, site = tmp_path_factory.mktemp("crawl"), Site()
    with site.serving():
        crawled(site, folder, *AGAIN, max_pages=60)
    directory = folder / "crawl"
    copy = directory / "checkpoints/00000001"
    shutil.copytree(directory, copy, ignore=shutil.ignore_patterns("search", "checkpoints", "logs"))
    return directory


@pytest.fixture(scope="module")
def jobs() -> Iterator[Forks]:
    with forks("tests.results.forget.killing") as program:
        yield program


class Case:
    """One copy of the crawl."""

    def __init__(self, jobs: Forks, crawl: Path, folder: Path) -> None:
        self._jobs, self._crawl, self._folder = jobs, crawl, folder
        self.directory, self.notes = folder / "case", folder / "notes"

    def begin(self) -> None:
        shutil.rmtree(self.directory, ignore_errors=True)
        shutil.copytree(self._crawl, self.directory)

    def run(self, fatal: int = 0) -> str:
        self.notes.write_text("")
        answer = str(self._folder / "answer")
        return self._jobs(
            directory=str(self.directory), pattern=GONE, notes=str(self.notes), fatal=fatal, answer=answer
        )

    def steps(self) -> int:
        return int((self._folder / "answer").read_text())

    def outcome(self) -> tuple[list[str], list[tuple[tuple[str, str], bytes]], list[str], list[str]]:
        """What is left of the crawl, in all that can be compared."""
        assert marks.found(self.directory, MARKS) + marks.found_in_stores(self.directory, MARKS) == []
        assert marks.found_in_stores(self.directory / "checkpoints/00000001", MARKS) == []
        assert [one.says() for one in verify_of(self.directory, deep=True).damage] == []
        assert verify_of(self.directory).notes == ()
        warcs = list((self.directory / "warc").iterdir())
        assert strict.faults(warcs, forgotten=True) == []
        assert len((self.directory / "forgotten.jsonl").read_text().splitlines()) == 1
        strays = [path.name for path in self.directory.rglob("*forget*") if path.name != "forgotten.jsonl"]
        pages = sorted(
            f"{row['url']} {row['fetched_at']} {row['warc_type']} {row['warc_file']} {row['duplicate_of']}"
            for row in rows(self.directory / "pages")
        )
        return pages, sorted(payloads(self.directory).items()), sorted(path.name for path in warcs), strays


@pytest.mark.heavy
@pytest.mark.long
def test_it_is_finished_after_a_kill_at_each_step_of_the_plan(jobs: Forks, crawl: Path, tmp_path: Path) -> None:
    case = Case(jobs, crawl, tmp_path)
    case.begin()
    assert case.run() == "done"
    wanted, plan = case.outcome(), [int(line.split()[0]) for line in case.notes.read_text().splitlines()]
    assert len(plan) == 19, "steps of the crawl and of its checkpoint"
    for changes in plan[::3]:
        case.begin()
        assert case.run(changes + 2) == "killed"
        assert case.run() == "done"
        assert case.outcome() == wanted


@pytest.mark.long
@pytest.mark.acceptance
@pytest.mark.timeout(3600)
def test_it_is_finished_after_a_kill_at_any_change_of_the_disk(jobs: Forks, crawl: Path, tmp_path: Path) -> None:
    case = Case(jobs, crawl, tmp_path)
    case.begin()
    assert case.run() == "done"
    wanted, steps = case.outcome(), case.steps()
    assert steps > 100
    for fatal in range(FIRST_STEP + 1, steps + 1, STEP):
        case.begin()
        assert case.run(fatal) == "killed", fatal
        assert case.run() == "done", fatal
        assert case.outcome() == wanted, fatal
