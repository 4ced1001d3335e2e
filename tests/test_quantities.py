"""Times, sizes and counts are read as people write them for other programs."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import jsonschema
import pytest

from gossamer import Crawler
from gossamer.config import configure
from gossamer.config.live import change
from gossamer.config.schema import schema
from gossamer.model.errors import ConfigError
from gossamer.quantities import read_quantity

TIMES = {
    # curl, wget, coreutils: seconds with a fraction, or one letter.
    "90": 90, "1.5": 1.5, ".5": 0.5, "30s": 30, "5m": 300, "1h": 3600, "2d": 172_800, "0.5m": 30,
    # systemd.time(7).
    "2 h": 7200, "2hours": 7200, "48hr": 172_800, "55s500ms": 55.5, "300ms20s 5day": 432_020.3, "1w": 604_800,
    "5min 20s": 320, "100usec": 1e-4, "250µs": 25e-5,
    # Go and Kubernetes.
    "1h30m": 5400, "500ms": 0.5, "1m0s": 60,
    # ffmpeg.
    "01:30:00": 5400, "1:30.5": 90.5, "90:00": 5400,
    # ISO 8601.
    "PT1H30M": 5400, "P1D": 86_400, "P1DT12H": 129_600, "PT0.5S": 0.5,
}  # fmt: skip
SIZES = {
    "512": 512, "5MB": 5_000_000, "5mb": 5_000_000, "1 kB": 1000, "512MiB": 512 << 20, "4GiB": 4 << 30, "10B": 10,
    # curl, wget, docker, systemd: a letter alone counts in 1024; Kubernetes: Ki, Mi, Gi.
    "200K": 200 << 10, "512m": 512 << 20, "2g": 2 << 30, "1T": 1 << 40, "128Mi": 128 << 20, "1.5Gi": 3 << 29,
    "1e6": 1_000_000,
    # TOML.
    "0x10": 16, "0o17": 15, "0b11": 3, "0b": 0,
}  # fmt: skip
COUNTS = {
    "1000": 1000, "1e6": 1_000_000, "1_000_000": 1_000_000, "0xFF": 255, "10k": 10_000, "2.5M": 2_500_000,
    "1 M": 1_000_000,
}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "unit", "number"),
    [
        (text, unit, number)
        for unit, texts in (("seconds", TIMES), ("bytes", SIZES), ("", COUNTS))
        for text, number in texts.items()
    ],
)
def test_a_quantity_is_read_as_other_programs_read_it(text: str, unit: str, number: float) -> None:
    assert read_quantity(text, unit) == pytest.approx(number, rel=1e-12)


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        *(
            (text, "seconds")
            for text in ("", "h", "5MB", "1M", "P1M", "P", "1h x", "1h30", "1,5h", "1::2", "-1h", "1h" * 40)
        ),
        *((text, "bytes") for text in ("", "MB", "1h", "5 apples", "5 MB 3 kB", "1,5MB", "-5MB", "0xg", "1" * 70)),
        *((text, "") for text in ("", "k", "5MB", "1h", "1,000", "ten", "\u0663", "\uff13")),
    ],
)
def test_what_is_no_quantity_is_none(text: str, unit: str) -> None:
    assert read_quantity(text, unit) is None


def test_a_file_options_sets_and_changes_take_units(tmp_path: Path) -> None:
    file = tmp_path / "gossamer.toml"
    file.write_text(
        'limits.max_time_s = 01:30:00\nlimits.max_pages = 1e6\nfetch.request_s_max = "2 min"\n'
        'identity.signature_s = "5m"\nrevisit.max_age_s = { news = "1h" }\n[host."example.org"]\ndelay_s = "500ms"\n'
    )
    config = configure(file, options={"max_bytes": "5MB", "delay": "250ms"}, sets=["fetch.body_bytes_max=2MiB"])
    assert (config.limits.max_time_s, config.limits.max_pages, config.limits.max_bytes) == (5400, 10**6, 5 * 10**6)
    assert (config.fetch.request_s_max, config.fetch.body_bytes_max) == (120, 2 << 20)
    assert (config.identity.signature_s, config.revisit.max_age_s) == (300, {"news": 3600})
    assert (config.politeness.delay_s_min, config.host.overrides["example.org"].delay_s) == (0.25, 0.5)
    changed, _ = change(config, ["politeness.delay_s_min=1m", "limits.max_pages=10k"])
    assert (changed.politeness.delay_s_min, changed.limits.max_pages) == (60, 10_000)
    with pytest.raises(ConfigError, match=r'limits.max_time_s is "5MB", expected a number of seconds, or a time'):
        change(config, ["limits.max_time_s=5MB"])


def test_the_schema_takes_what_the_configuration_takes() -> None:
    check = jsonschema.Draft202012Validator(schema()).is_valid
    assert check({"limits": {"max_time_s": "1h", "max_bytes": "5MB"}, "memory": {"budget_bytes": "512MiB"}})
    assert not check({"limits": {"max_pages": "many"}})
    assert not check({"limits": {"max_time_s": -1}})


def test_a_program_gives_texts_and_timedeltas(tmp_path: Path) -> None:
    crawler = Crawler(
        "http://127.0.0.1:9/",
        output=tmp_path / "crawl",
        allow_private=True,
        max_time=timedelta(hours=1, milliseconds=500),
        delay="500ms",
        max_bytes="5MB",
        memory="512MiB",
        settings={"fetch.request_s_max": timedelta(days=1), "fetch.body_bytes_max": "1MiB"},
    )
    config = crawler.config
    assert (config.limits.max_time_s, config.politeness.delay_s_min) == (3600.5, 0.5)
    assert (config.limits.max_bytes, config.memory.budget_bytes) == (5_000_000, 512 << 20)
    assert (config.fetch.request_s_max, config.fetch.body_bytes_max) == (86_400, 1 << 20)
