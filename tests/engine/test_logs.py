"""Logs: levels by room, bounded files, documented fields."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from gossamer.engine.logs import PACKAGE_OF, Logs, log_crash
from gossamer.engine.options import PACKAGES, LogsOptions
from gossamer.model.errors import ComponentFailedError
from gossamer.options import OptionsError, convert
from gossamer.testing import FakeClock


def opened(tmp_path: Path, **options: object) -> Logs:
    return Logs(tmp_path, FakeClock(), convert(LogsOptions, options))


def lines(file: Path) -> list[dict[str, object]]:
    return [msgspec.json.decode(line, type=dict[str, object]) for line in file.read_bytes().splitlines()]


def test_a_line_says_when_how_grave_where_and_what(tmp_path: Path) -> None:
    logs = opened(tmp_path)
    logs.info("dns_error", url="http://a.test/", error="no such name")
    logs.close()
    assert lines(tmp_path / "info.log") == [
        {
            "at": "1970-01-12T13:46:40.000+00:00", "level": "info", "package": "resolve", "event": "dns_error",
            "url": "http://a.test/", "error": "no such name",
        }
    ]  # fmt: skip


def test_a_crash_and_errors_of_all_kinds_have_one_form(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    first = Logs(tmp_path / "logs", FakeClock())
    first.critical("internal_error", ValueError("one"), url="http://a.test/")
    first.critical("segment_refused", "two", path="x")
    first.close()
    log_crash(RuntimeError("three"), tmp_path)
    log_crash(ComponentFailedError("four", "its own trace"), tmp_path)
    found = lines(tmp_path / "logs/critical.log")
    assert [list(line)[:4] for line in found] == [["at", "level", "package", "event"]] * 4
    assert [line["error"] for line in found] == [
        "ValueError: one", "two", "RuntimeError: three", "ComponentFailedError: four"
    ]  # fmt: skip
    assert all(datetime.fromisoformat(str(line["at"])).utcoffset() == timedelta(0) for line in found)
    assert [line["package"] for line in found] == ["crawl", "seeds", "crawl", "crawl"]
    assert found[3]["traceback"] == "its own trace"


def test_each_room_has_its_level_and_critical_lines_always_stand(tmp_path: Path) -> None:
    logs = opened(tmp_path, level="warning", levels={"robots": "debug", "fetch": "off"})
    logs.info("robots", url="u")
    logs.info("http_error", url="u")
    logs.info("dns_error", url="u")
    logs.info("alarm", alarm="disk")
    logs.critical("internal_error", ValueError("ours"))  # noqa: PLE1205 - not the logging module
    logs.close()
    assert [line["event"] for line in lines(tmp_path / "info.log")] == ["robots", "alarm"]
    assert [line["event"] for line in lines(tmp_path / "critical.log")] == ["internal_error"]


def test_levels_change_while_it_runs(tmp_path: Path) -> None:
    logs = opened(tmp_path)
    assert not logs.logs_visits
    logs.reconfigure(convert(LogsOptions, {"levels": {"fetch": "debug"}}))
    assert logs.logs_visits
    logs.debug("visited", url="u")
    logs.reconfigure(convert(LogsOptions, {"level": "off"}))
    logs.info("http_error", url="u")
    logs.close()
    assert [line["event"] for line in lines(tmp_path / "info.log")] == ["visited"]


@pytest.mark.promise("Bounds", "Logs are bounded in bytes.")
@pytest.mark.parametrize("kept", [0, 1, 3])
def test_files_are_bounded_in_length_and_number(tmp_path: Path, kept: int) -> None:
    logs = opened(tmp_path, file_bytes_max=1_024, files_kept=kept)
    for number in range(200):
        logs.info("http_error", url=f"http://a.test/{number}", error="x" * 50)
        logs.flush()
    logs.close()
    found = sorted(path.name for path in tmp_path.glob("info.log*"))
    assert found == ["info.log", *(f"info.log.{n + 1}" for n in range(kept))]
    assert all(path.stat().st_size <= 1_024 for path in tmp_path.glob("info.log*"))
    oldest_first = [tmp_path / name for name in (*reversed(found[1:]), "info.log")]
    urls = [line["url"] for path in oldest_first for line in lines(path)]
    assert urls == [f"http://a.test/{number}" for number in range(200 - len(urls), 200)]


def test_a_file_that_is_there_goes_on(tmp_path: Path) -> None:
    for number in range(2):
        logs = opened(tmp_path)
        logs.info("http_error", number=number)
        logs.close()
    assert [line["number"] for line in lines(tmp_path / "info.log")] == [0, 1]


def test_a_log_that_is_removed_is_made_again(tmp_path: Path) -> None:
    logs = opened(tmp_path / "logs")
    logs.info("dns_error", url="1")
    logs.flush()
    shutil.rmtree(tmp_path / "logs")
    logs.info("dns_error", url="2")
    logs.close()
    assert [line["url"] for line in lines(tmp_path / "logs/info.log")] == ["2"]


def rename(file: Path) -> None:
    """Rename a log as logrotate does with its directive `create`, the default of Debian."""
    file.rename(file.with_name("rotated"))
    file.touch()


def cut(file: Path) -> None:
    """Copy a log and cut it as logrotate does with `copytruncate`."""
    shutil.copy(file, file.with_name("rotated"))
    os.truncate(file, 0)


@pytest.mark.parametrize("rotate", [rename, cut])
@pytest.mark.parametrize("before", [["1"], []])
def test_a_log_that_another_program_rotates_goes_on_at_its_path(
    tmp_path: Path, rotate: Callable[[Path], None], before: list[str]
) -> None:
    logs = opened(tmp_path)
    for url in before:
        logs.info("dns_error", url=url)
    logs.flush()
    rotate(tmp_path / "info.log")
    for url in ("2", "3"):
        logs.info("dns_error", url=url)
        logs.flush()
    logs.close()
    assert [line["url"] for line in lines(tmp_path / "info.log")] == ["2", "3"]
    assert [line["url"] for line in lines(tmp_path / "rotated")] == before


def test_a_log_that_cannot_be_renewed_keeps_its_file_and_says_why(tmp_path: Path) -> None:
    logs = opened(tmp_path / "logs", file_bytes_max=1_024)
    logs.info("dns_error", url="x" * 900)
    logs.flush()
    shutil.rmtree(tmp_path / "logs")
    (tmp_path / "logs").write_bytes(b"")
    logs.info("dns_error", url="x" * 900)
    logs.flush()
    assert logs.error == f"{tmp_path / 'logs/info.log'}: Not a directory"
    with (tmp_path / "other").open("wb"):  # Its descriptor is another one than that of the log.
        logs.info("dns_error", url="y")
        logs.flush()
    assert (tmp_path / "other").read_bytes() == b""
    (tmp_path / "logs").unlink()
    logs.info("dns_error", url="z")
    logs.flush()
    assert not logs.error
    assert [line["url"] for line in lines(tmp_path / "logs/info.log")] == ["z"]


def test_an_unknown_room_is_refused_with_the_nearest() -> None:
    with pytest.raises(OptionsError, match="did you mean robots"):
        convert(LogsOptions, {"levels": {"robot": "debug"}})
    assert set(PACKAGE_OF.values()) <= set(PACKAGES)
