from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from gossamer.lab.simweb.__main__ import main
from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.process import SimwebProcess

TINY = SimwebOptions(hosts=6, pages=6)


def test_the_directory_is_temporary_unless_given() -> None:
    with SimwebProcess(TINY) as process:
        directory = process.directory
        assert process.hosts_file.exists()
        assert process.seeds == (f"http://h0000.d000.test:{process.port}/",)
    assert not directory.exists()


def test_a_port_in_use_is_one_clear_line(tmp_path: Path) -> None:
    with socket.create_server(("127.16.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        process = SimwebProcess(replace(TINY, port=port), tmp_path)
        with pytest.raises(RuntimeError, match=f"cannot listen on 127.16.0.1:{port}"):
            process.start()


def test_it_can_be_started_again_with_the_same_log(tmp_path: Path) -> None:
    process = SimwebProcess(TINY, tmp_path)
    for _ in range(2):
        process.start()
        with socket.create_connection((process.web.hosts[0].address, process.port)) as client:
            client.sendall(b"GET / HTTP/1.1\r\nHost: h0000.d000.test\r\n\r\n")
            client.recv(100)
        process.stop()
    assert [one.path for one in process.requests()] == ["/", "/"]


def test_it_ends_when_its_parent_dies() -> None:
    code = (
        "import os\nfrom gossamer.lab.simweb.options import SimwebOptions\n"
        "from gossamer.lab.simweb.process import SimwebProcess\n"
        "process = SimwebProcess(SimwebOptions(hosts=2, pages=2)); process.start()\n"
        "print(process.web.hosts[0].address, process.port, flush=True); os._exit(0)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True, env={
        **os.environ, "PYTHONPATH": ":".join(sys.path)})  # fmt: skip
    address, port = run.stdout.split()
    while True:
        # It ends on its own: when its port refuses, it has. The test's own time limit is the deadline.
        with socket.socket() as probe:
            probe.settimeout(1)
            if probe.connect_ex((address, int(port))):
                break


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--hosts", "0"], "hosts: "),
        (["--set", "nonsense=1"], "nonsense: "),
        (["--set", "nonsense"], "KEY=VALUE"),
        (["--options", "{"], ""),
        (["--log", "/dev/null/log"], "/dev/null"),
    ],
)
def test_bad_options_are_one_line(arguments: list[str], line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    said = capsys.readouterr().err
    assert said.startswith("simweb: ")
    assert line in said
    assert said.count("\n") == 1


def test_the_command_announces_the_web(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "gossamer.lab.simweb", "--preset", "small", "--hosts", "7", "--plain", "--traps"]
    command += ["--set", "bytes_median=500", "--hosts-file", str(tmp_path / "hosts"), "--until-stdin-closes"]
    env = {**os.environ, "PYTHONPATH": ":".join(sys.path)}
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True, env=env, input="")
    facts = json.loads(run.stdout)
    assert facts["hosts"] == 7
    assert facts["seeds"] == [f"http://h0000.d000.test:{facts['port']}/"]
    assert len((tmp_path / "hosts").read_text().splitlines()) == 7
