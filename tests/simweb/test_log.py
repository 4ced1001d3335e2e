from __future__ import annotations

from pathlib import Path

import pytest

from gossamer.lab.simweb.log import FLUSH_BYTES, Logged, RequestLog, read_log

ONE = Logged(1.5, 2.25, 1.0, "127.16.0.1", "h.test", "/a?b=c", 200, 7, 3, 512, True, 0.0, "GET", "agent (+x)")


def test_what_is_written_is_read(tmp_path: Path) -> None:
    log = RequestLog(tmp_path / "deep" / "log")
    other = Logged(3.0, 4.0, 3.0, "127.16.0.2", "-", "-", 0, 8, 0, 0, False, 9.5, "-", "-")
    log.add(ONE)
    log.add(other)
    log.close()
    assert read_log(tmp_path / "deep" / "log") == [ONE, other]


def test_opening_again_appends(tmp_path: Path) -> None:
    for _ in range(2):
        log = RequestLog(tmp_path / "log")
        log.add(ONE)
        log.close()
    assert read_log(tmp_path / "log") == [ONE, ONE]


def test_clients_cannot_forge_lines(tmp_path: Path) -> None:
    log = RequestLog(tmp_path / "log")
    log.add(Logged(1, 2, 1, "127.16.0.1", "h\tx", "/a\n1\t2", 200, 1, 1, 0, True, 0, "GET", "a\r\nb\x85c\u2028d"))
    log.close()
    (one,) = read_log(tmp_path / "log")
    assert (one.host, one.path, one.agent) == ("h\\x09x", "/a\\x0a1\\x092", "a\\x0d\\x0ab\\x85c\\x2028d")


def test_a_line_cut_off_is_left_out(tmp_path: Path) -> None:
    log = RequestLog(tmp_path / "log")
    log.add(ONE)
    log.add(ONE)
    log.close()
    data = (tmp_path / "log").read_bytes()
    (tmp_path / "log").write_bytes(data[:-20])
    assert read_log(tmp_path / "log") == [ONE]


def test_a_full_buffer_is_written_at_once(tmp_path: Path) -> None:
    log = RequestLog(tmp_path / "log")
    while not (tmp_path / "log").stat().st_size:
        log.add(ONE)
    assert (tmp_path / "log").stat().st_size >= FLUSH_BYTES
    log.close()


def test_other_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("hello\n")
    with pytest.raises(ValueError, match="no simweb log"):
        read_log(tmp_path / "log")
