"""What a line of the log costs: ours, structlog's as quick as it can be made, and logging's.

Prints a table of microseconds of CPU a line, medians of rounds in one process; `--json FILE` writes them.
"""

from __future__ import annotations

import argparse
import io
import json
import logging
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import structlog

from gossamer.engine.logs import Logs
from gossamer.engine.options import LogsOptions
from gossamer.options import convert
from gossamer.world.clock import WallClock

LINES, ROUNDS = 20_000, 7
URL, ERROR = "https://www.example.org/archive/2019/07/index.html?page=3", "HTTP 404"


def cost_us(line: Callable[[], object], after: Callable[[], object]) -> float:
    """Return the median cost of a line, what hands them over included."""
    rounds = []
    for _ in range(ROUNDS):
        began = time.process_time()
        for _ in range(LINES):
            line()
        after()
        rounds.append((time.process_time() - began) / LINES * 1e6)
    return statistics.median(rounds)


def ours(directory: Path, level: str) -> float:
    options = convert(LogsOptions, {"level": level, "file_bytes_max": 1 << 40})
    logs = Logs(directory, WallClock(), options)
    try:
        return cost_us(lambda: logs.info("http_error", url=URL, error=ERROR, attempt=1), logs.flush)
    finally:
        logs.close()


def structlogs(directory: Path, level: int) -> float:
    encode = msgspec.json.Encoder().encode
    with (directory / "structlog").open("wb", buffering=1 << 16) as file:
        logger = structlog.wrap_logger(
            structlog.BytesLogger(file),
            processors=[
                structlog.processors.add_log_level,
                structlog.processors.TimeStamper(fmt="iso", utc=True),
                structlog.processors.JSONRenderer(serializer=lambda event, **_: encode(event)),
            ],
            wrapper_class=structlog.make_filtering_bound_logger(level),
            cache_logger_on_first_use=True,
        ).bind(room="fetch")
        return cost_us(lambda: logger.info("http_error", url=URL, error=ERROR, attempt=1), file.flush)


def standard() -> float:
    out = io.StringIO()
    logger = logging.getLogger("bench")
    logger.propagate = False
    logger.setLevel(logging.INFO)
    logger.addHandler(logging.StreamHandler(out))
    return cost_us(
        lambda: logger.info(json.dumps({"event": "http_error", "url": URL, "error": ERROR, "attempt": 1})), out.flush
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--json", type=Path)
    target = parser.parse_args().json
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        found = {
            "Logs": ours(directory, "info"),
            "structlog": structlogs(directory, logging.INFO),
            "logging": standard(),
            "Logs, level too low": ours(directory, "error"),
            "structlog, level too low": structlogs(directory, logging.ERROR),
        }
    for what, us in found.items():
        print(f"{what:<26}{us:6.2f} µs a line")
    if target is not None:
        target.write_text(json.dumps(found))


if __name__ == "__main__":
    main()
