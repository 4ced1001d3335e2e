"""The process that crawls, from its order to its word: it gets it, or it goes and leaves nothing."""

import os
import signal
from pathlib import Path

import msgspec

from gossamer.cli.checking import job_of
from gossamer.cli.ends import REFUSED
from gossamer.cli.job import Job, Order, decode
from gossamer.cli.start import Started
from gossamer.config import Config, configure
from tests.cli.conftest import Gossamer, until

PATIENCE_S = 30.0


def order(directory: Path, **changes: object) -> Order:
    page = directory / "page.html"
    page.write_text("<title>Here</title>")
    asked = Order(
        command="crawl",
        seeds=(f"file://{page}",),
        options={"allow_private": True, "output": str(directory / "made/crawl")},
        sets=("scope.schemes=['file']", "progress.form='quiet'"),
        parent=os.getpid(),
    )
    return msgspec.structs.replace(asked, **changes)


def test_an_order_becomes_a_job_and_a_crawl(tmp_path: Path) -> None:
    with Started(order(tmp_path)) as started:
        job = started.job()
        assert isinstance(job, Job)
        assert job.directory == str(tmp_path / "made/crawl")
        assert not (tmp_path / "made/crawl/crawl.toml").exists()
        child = started.begin()
    assert child.wait(PATIENCE_S) == 0
    assert (tmp_path / "made/crawl/crawl.toml").exists()


def test_a_job_that_is_checked_already_is_crawled(tmp_path: Path) -> None:
    with Started(order(tmp_path)) as first:
        job = first.job()
    assert isinstance(job, Job)
    child = Started(msgspec.structs.replace(job, parent=os.getpid(), restart=True)).begin()
    assert child.wait(PATIENCE_S) == 0
    assert (tmp_path / "made/crawl/crawl.toml").exists()


def test_a_child_without_its_word_is_gone_when_its_context_is_and_nothing_is_left(tmp_path: Path) -> None:
    with Started(order(tmp_path)) as started:
        pid = started._process.pid if started._process else 0
        assert isinstance(started.job(), Job)
        assert (tmp_path / "made/crawl").is_dir()
        assert Path(f"/proc/{pid}").exists()
    assert not Path(f"/proc/{pid}").exists()
    assert not (tmp_path / "made").exists()


def test_a_child_that_nobody_waits_for_is_gone_too(tmp_path: Path) -> None:
    with Started(order(tmp_path)) as started:
        pid = started._process.pid if started._process else 0
    assert not Path(f"/proc/{pid}").exists()
    assert not (tmp_path / "made").exists()


def test_what_is_refused_is_a_status(tmp_path: Path) -> None:
    with Started(order(tmp_path, sets=("limits.max_page=3",))) as started:
        assert started.job() == REFUSED
    assert not (tmp_path / "made").exists()


def test_the_word_for_a_child_that_died_is_no_error_of_ours(tmp_path: Path) -> None:
    with Started(order(tmp_path)) as started:
        assert isinstance(started.job(), Job)
        assert started._process is not None
        started._process.kill()
        os.waitid(os.P_PID, started._process.pid, os.WEXITED | os.WNOWAIT)
        child = started.begin()
    assert child.wait(PATIENCE_S) == -signal.SIGKILL


def test_an_interrupt_ends_slow_checks_and_leaves_nothing(run: Gossamer) -> None:
    os.mkfifo(run.directory / "slow")
    process = run.start("crawl", "--seeds", "slow", "--allow-private", "-o", "deep/er")
    with (run.directory / "slow").open("w") as seeds:  # Opens when somebody reads: the checks have begun.
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) == 130
        seeds.write("")
    assert not (run.directory / "deep").exists()


def test_an_interrupt_while_seeds_are_typed_leaves_nothing(run: Gossamer) -> None:
    ours, theirs = os.pipe()
    with os.fdopen(ours), os.fdopen(theirs, "w"):
        process = run.start("crawl", "--seeds", "-", "--allow-private", "-o", "deep/er", stdin=ours)
        until((run.directory / "deep/er/seeds.txt").exists)
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) == 130
    assert not (run.directory / "deep").exists()


def test_words_that_are_no_text_arrive_as_they_were() -> None:
    asked = Order(command="crawl", seeds=("\udce9",), options={"output": "\udcff"}, parent=1)
    assert decode(asked.encode()) == asked


def test_a_configuration_reaches_a_later_child_as_it_was() -> None:
    config = configure(
        None,
        options={"max_pages": "7", "delay": "2.5", "scope": "any"},
        sets=["components.protocols={gemini='a:B'}", "scope.schemes=['http']", "memory.budget_bytes='1GiB'"],
        seeds=["http://127.0.0.1/ä"],
    )
    job = decode(job_of(config, Path("crawl")).encode())
    assert isinstance(job, Job)
    there = Config.model_validate_json(job.values).with_origins(job.origins)
    assert there == config
    assert there.origins == config.origins
    assert job.process_s_max == config.crawl.process_s_max
