"""`gossamer scale` killed at any step goes on where it was, and nothing of the crawl is lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import gossamer
from gossamer.api import scale_crawl
from gossamer.lab.shards import Shards
from gossamer.lab.simweb.process import SimwebProcess
from gossamer.lab.simweb.truth import Truth
from gossamer.model.errors import ConfigError
from tests.cluster.crawls import begun, config_of, ended
from tests.cluster.test_scale import WEB, asked_twice, opened

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.promise(
        "Several shards",
        "A killed change of the number of shards can be continued; until it is complete, the crawl does not run.",
    ),
]

SCALE = "import sys; from gossamer.api import scale_crawl; print(scale_crawl(sys.argv[1], int(sys.argv[2])).after)"


def test_a_scaling_that_is_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    """Killed at eighteen moments from the first step to the last; the crawl refuses to run meanwhile."""
    directory = tmp_path / "crawl"
    with SimwebProcess(WEB, tmp_path / "web") as simweb:
        config = config_of(simweb, directory, 4)
        begun(config, directory, 4, pages=250)
        kills = refused = 0
        for shards in (7, 2):
            for calls in (1, 3, 6, 12, 25, 45, 70, 100, 140):
                status = _killed_after(directory, shards, calls)
                kills += status == -signal.SIGKILL
                if (directory / "state/scaling.json").exists():
                    refused += 1
                    with pytest.raises(ConfigError, match=f"gossamer scale .* --workers {shards}"):
                        Shards(opened(directory), directory, 4).check()
                    with pytest.raises(ConfigError, match="is being divided"):
                        scale_crawl(directory, shards + 1)
            assert scale_crawl(directory, shards).after == shards
            config = opened(directory)
        assert kills >= 10
        assert refused >= 8
        ends = ended(config, directory, 2)
        assert Truth(simweb.web).walk(simweb.seeds).differences(ends, simweb.web) == []
        assert asked_twice(simweb) == {}


def _killed_after(directory: Path, shards: int, calls: int) -> int:
    """Scale in a process that kills itself at its n-th write: of a store's commit or apply, a file, a rename."""
    script = f"""
import os, signal, sys
from pathlib import Path
from gossamer.state import store
from gossamer.assembly import scaling
left = {calls}
def counted(function):
    def call(*args, **kwargs):
        global left
        left -= 1
        if left <= 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*args, **kwargs)
    return call
store.Store.commit = counted(store.Store.commit)
store.Store.apply = counted(store.Store.apply)
scaling.write_whole = counted(scaling.write_whole)
Path.rename, Path.unlink, Path.rmdir = counted(Path.rename), counted(Path.unlink), counted(Path.rmdir)
{SCALE}
"""
    environment = os.environ | {"PYTHONPATH": str(Path(gossamer.__file__).parents[1])}
    command = [sys.executable, "-c", script, str(directory), str(shards)]
    return subprocess.run(command, env=environment, check=False, capture_output=True).returncode
