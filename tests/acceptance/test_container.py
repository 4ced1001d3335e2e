"""The container's steps run, and what they make crawls as its user on a read-only root.

No image is pulled: the steps run in a copy-on-write view of this machine, which stands for the base image (Debian with
Python), in a mount namespace of its own. Both stages share it. That needs root.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

import gossamer
from tests.test_release import ROOT

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(900)]
AS_ROOT = [] if os.geteuid() == 0 else ["sudo", "--non-interactive"]
VIEW = """\
set -eu
mount -t tmpfs none "$1"
mkdir "$1/upper" "$1/work" "$1/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$1/root"
mount -t proc proc "$1/root/proc"
mount --rbind /dev "$1/root/dev"
chroot "$1/root" sh -eux "$2/steps"
mount -o remount,ro "$1/root"
mount -t tmpfs none "$1/root/tmp"
mount -t tmpfs -o uid=10001,gid=10001 none "$1/root/srv/gossamer"
chroot "$1/root" setpriv --reuid 10001 --regid 10001 --clear-groups --no-new-privs --bounding-set=-all \\
    env -i {environment} sh -euc "$(cat "$2/use")"
"""
USE = """\
cd {directory}
touch /etc/changed 2>/dev/null && exit 9
id -u; id -g
gossamer --version
gossamer demo >/dev/null
gossamer crawl http://127.0.0.1:9/ --allow-private --mode continuous --quiet -o crawl \\
    --set frontier.unanswered_failures_max=0 &
for attempt in $(seq 400); do {health} >/dev/null 2>&1 && break || sleep 0.3; done
{health} | grep -c '^gossamer_build_info{{'
kill -TERM $!
wait $! || echo "ended $?"
{health} >/dev/null 2>&1 || echo unhealthy
"""


class Step(NamedTuple):
    """An instruction of a Containerfile."""

    word: str
    text: str


def steps() -> list[Step]:
    lines = (ROOT / "Containerfile").read_text(encoding="utf-8").replace("\\\n", "").splitlines()
    return [Step(*line.split(maxsplit=1)) for line in lines if line and not line.startswith("#")]


def of(word: str) -> list[str]:
    return [step.text for step in steps() if step.word == word]


def script(context: Path) -> str:
    """Return what runs in the view: each RUN as it is, and each COPY from the context."""
    lines = ["export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin CHROMIUM="]
    for word, text in steps():
        if word == "RUN":
            lines.append(text)
        elif word == "COPY" and not text.startswith("--from=build"):
            *sources, target = text.split()
            inside = {source: f"{source}/." if (context / source).is_dir() else source for source in sources}
            lines += [f"mkdir -p {target}", *(f"cp -r {context}/{source} {target}" for source in inside.values())]
        elif word == "COPY":
            _, source, target = text.split()
            assert source == target, "both stages share a root here"
    return "\n".join(lines) + "\n"


@pytest.mark.long
def test_the_steps_make_what_crawls_on_a_read_only_root(tmp_path: Path) -> None:
    # A fresh clone, and of it what .dockerignore lets pass: what was built before is not there.
    for name in (line[1:] for line in (ROOT / ".dockerignore").read_text("utf-8").splitlines() if line[0] == "!"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(ROOT / name, tmp_path / name) if (ROOT / name).is_dir() else shutil.copy(
            ROOT / name, tmp_path / name
        )
    (tmp_path / "view").mkdir()
    (tmp_path / "steps").write_text(script(tmp_path))
    (health,) = of("HEALTHCHECK")
    probe = " ".join(json.loads(health.partition("CMD ")[2]))
    (directory,) = of("WORKDIR")
    (tmp_path / "use").write_text(USE.format(directory=directory, health=probe))
    tmp_path.chmod(0o755)
    (environment,) = of("ENV")
    command = [*AS_ROOT, "unshare", "--mount", "sh", "-c", VIEW.format(environment=environment), "view"]
    done = subprocess.run(
        [*command, tmp_path / "view", tmp_path], stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-6:] == ["10001", "10001", gossamer.__version__, "1", "ended 130", "unhealthy"]
