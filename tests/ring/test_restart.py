"""Between the death of a crawl's process and its restart by the supervisor."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.process import SimwebProcess
from tests.commands import run
from tests.ring.crawls import OWN, command_line, until

WEB = SimwebOptions.plain(seed=4, hosts=6, pages=600, bytes_median=4000)


@pytest.mark.heavy
def test_a_crawl_that_is_about_to_restart_is_not_called_stopped(tmp_path: Path) -> None:
    directory = tmp_path / "crawl"
    with SimwebProcess(WEB, tmp_path / "web") as web, command_line(directory) as cli:
        cli.crawl(web.seeds, *OWN, hosts=str(web.hosts_file), scope="any")
        until((directory / "state/control.sock").exists)
        assert cli.process is not None
        supervisor = cli.process.pid
        (child,) = Path(f"/proc/{supervisor}/task/{supervisor}/children").read_text().split()
        os.kill(supervisor, signal.SIGSTOP)  # It notices the death only when it continues.
        try:
            os.kill(int(child), signal.SIGKILL)
            status, out, _ = run("status", str(directory), "--json")
            assert status == 0
            assert '"state": "starting"' in out
        finally:
            os.kill(supervisor, signal.SIGCONT)
        cli.process.send_signal(signal.SIGINT)
        assert cli.wait() in (0, 130)
    assert run("status", str(directory))[1].split()[:2] == ["state", "stopped:"]
