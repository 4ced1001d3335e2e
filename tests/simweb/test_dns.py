from __future__ import annotations

import socket
import struct
from pathlib import Path

import pytest

from gossamer.lab.simweb.process import SimwebProcess
from gossamer.lab.simweb.server import answer, write_hosts_file

NAMES = {"h1.d1.test": "127.16.0.9"}


def query(name: str, kind: int = 1, flags: int = 0x0100) -> bytes:
    question = b"".join(bytes((len(label),)) + label.encode() for label in name.split(".")) + b"\0"
    return struct.pack(">HHHHHH", 77, flags, 1, 0, 0, 0) + question + struct.pack(">HH", kind, 1)


def read(reply: bytes | None) -> tuple[int, int, bytes]:
    assert reply is not None
    ident, flags, questions, answers, _, _ = struct.unpack_from(">HHHHHH", reply)
    assert (ident, questions) == (77, 1)
    assert flags & 0x8400 == 0x8400
    return flags & 15, answers, reply[-4:]


def test_a_name_has_its_address_in_any_case() -> None:
    assert read(answer(query("H1.d1.TEST"), NAMES.get)) == (0, 1, socket.inet_aton("127.16.0.9"))


def test_other_names_and_types() -> None:
    assert read(answer(query("h2.d1.test"), NAMES.get))[:2] == (3, 0)
    assert read(answer(query("h1.d1.test", 28), NAMES.get))[:2] == (0, 0)
    assert read(answer(query("h1.d1.test", flags=0x0900), NAMES.get))[:2] == (4, 0)


@pytest.mark.parametrize("data", [b"", b"x" * 11, query("a.test", flags=0x8000), query("a.test")[:-5], b"\0" * 12])
def test_noise_is_not_answered(data: bytes) -> None:
    assert answer(data, NAMES.get) is None


def test_the_running_web_answers_for_its_names(running: SimwebProcess) -> None:
    address, _, port = running.dns.partition(":")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(60)
        for name, expected in list(running.web.names.items())[:5]:
            client.sendto(query(name), (address, int(port)))
            assert read(client.recv(512)) == (0, 1, socket.inet_aton(expected))


def test_the_hosts_file_holds_every_name(running: SimwebProcess, tmp_path: Path) -> None:
    write_hosts_file(tmp_path / "hosts", running.web.names)
    pairs = dict(reversed(line.split()) for line in running.hosts_file.read_text().splitlines())
    assert pairs == running.web.names
    assert (tmp_path / "hosts").read_text() == running.hosts_file.read_text()
