from __future__ import annotations

from pathlib import Path

import pytest

from gossamer.model.errors import ConfigError
from gossamer.stages.resolve.answers import HostsFile, parse_hosts


def test_names_comments_and_several_addresses() -> None:
    known = parse_hosts(
        [
            "# all of it a comment",
            "",
            "127.0.0.1  Localhost a.test   # two names",
            "\t::1 localhost",
            "127.0.0.2 b.test. c.test",
            "127.0.0.1 a.test",
            "0:0:0:0:0:0:0:2 d.test",
        ]
    )
    assert known == {
        "localhost": ("127.0.0.1", "::1"),
        "a.test": ("127.0.0.1",),
        "b.test": ("127.0.0.2",),
        "c.test": ("127.0.0.2",),
        "d.test": ("::2",),
    }


@pytest.mark.parametrize("line", ["a.test 127.0.0.1", "127.0.0.1", "300.1.1.1 a.test", "127.0.0.1#a.test"])
def test_a_bad_line_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "hosts"
    path.write_text(f"127.0.0.1 ok.test\n\n{line}\n")
    with pytest.raises(ConfigError, match=rf"{path}:3: .*expected ADDRESS NAME") as caught:
        HostsFile(str(path))
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_the_operators(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        HostsFile(str(tmp_path / "nothing"))


def test_a_hundred_thousand_lines(tmp_path: Path) -> None:
    path = tmp_path / "hosts"
    path.write_text("".join(f"127.{i >> 16}.{i >> 8 & 255}.{i & 255} h{i}.test\n" for i in range(1, 100_001)))
    hosts = HostsFile(str(path))
    assert len(hosts) == 100_000
    assert hosts.addresses("h65536.test") == ("127.1.0.0",)
    assert hosts.addresses("h0.test") == ()


def test_reading_again(tmp_path: Path) -> None:
    path = tmp_path / "hosts"
    path.write_text("127.0.0.1 a.test\n")
    hosts = HostsFile(str(path))
    path.write_text("127.0.0.2 a.test\n")
    hosts.read()
    assert hosts.addresses("a.test") == ("127.0.0.2",)
    path.write_text("rubbish a.test\n")
    with pytest.raises(ConfigError):
        hosts.read()
    assert hosts.addresses("a.test") == ("127.0.0.2",)
