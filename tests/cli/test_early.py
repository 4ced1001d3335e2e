"""The process that begins before its job: it gets it, or it goes."""

import os
import signal
from pathlib import Path

import msgspec

from gossamer.cli.crawling import job_of
from gossamer.cli.early import Early
from gossamer.cli.ends import REFUSED
from gossamer.config import Config, configure

PATIENCE_S = 30.0


def test_a_child_without_a_job_is_gone_when_its_context_is() -> None:
    with Early() as early:
        pid = early._process.pid if early._process else 0
        assert Path(f"/proc/{pid}").exists()
    assert not Path(f"/proc/{pid}").exists()


def test_a_child_crawls_what_its_job_says(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text("<title>Here</title>")
    config = configure(
        None,
        options={"allow_private": True, "output": str(tmp_path / "crawl")},
        sets=["scope.schemes=['file']", "progress.form='quiet'"],
        seeds=[f"file://{tmp_path}/page.html"],
    )
    job = job_of(config, tmp_path / "crawl", seeds=config.seeds.urls)
    with Early() as early:
        child = early.begin(msgspec.structs.replace(job, parent=os.getpid()))
    assert child.wait(PATIENCE_S) == 0
    assert (tmp_path / "crawl/crawl.toml").exists()


def test_a_child_whose_pipe_ends_without_a_word_ends() -> None:
    early = Early()
    child, early._process = early._process, None
    assert child is not None
    early._let_go()
    assert child.wait(PATIENCE_S) == REFUSED


def test_a_job_for_a_child_that_died_is_no_error_of_ours(tmp_path: Path) -> None:
    with Early() as early:
        assert early._process is not None
        early._process.kill()
        os.waitid(os.P_PID, early._process.pid, os.WEXITED | os.WNOWAIT)
        child = early.begin(job_of(Config(), tmp_path))
    assert child.wait(PATIENCE_S) == -signal.SIGKILL


def test_a_configuration_reaches_the_child_as_it_was() -> None:
    config = configure(
        None,
        options={"max_pages": "7", "delay": "2.5", "scope": "any"},
        sets=["components.protocols={gemini='a:B'}", "scope.schemes=['http']", "memory.budget_bytes='1GiB'"],
        seeds=["http://127.0.0.1/ä"],
    )
    job = job_of(config, Path("crawl"))
    there = Config.model_validate_json(job.values).with_origins(job.origins)
    assert there == config
    assert there.origins == config.origins
