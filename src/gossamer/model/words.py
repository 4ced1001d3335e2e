"""Words: formats quantities and times for people, the same way everywhere."""

import shlex
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Literal

IGNORABLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""Default_Ignorable_Code_Point of DerivedCoreProperties.txt, Unicode 16; Python's unicodedata does not have it."""
UNSEEN = (
    f"[{IGNORABLE}"
    # Control characters except for tab and line break, separators, annotations, surrogates, private use, noncharacters.
    "\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufff9-\ufffb\ud800-\udfff\ue000-\uf8ff\ufdd0-\ufdef\ufffe\uffff"
    "\U000f0000-\U0010ffff]"
)
"""Pattern of characters that people do not see, in which a text can hide words for a machine. Emoji joined from several
lose their joiner, and Persian words the one that separates letters.
"""


def count(number: float) -> str:
    """Return a whole number with separators: 1,234,567."""
    return f"{number:,.0f}"


def counted(number: float, noun: str) -> str:
    """Return a count with its noun, `1 page` or `2 pages`."""
    return f"{count(number)} {noun}{'' if number == 1 else 's'}"


def size(size_bytes: float) -> str:
    """Return a size in decimal units: 12.3 MB."""
    return f"{size_bytes:.0f} B" if size_bytes < 1000 else _scale(size_bytes, ("B", "kB", "MB", "GB", "TB", "PB"))


def bit_rate(bits_s: float) -> str:
    """Return a rate of bits per second in decimal units."""
    return _scale(bits_s, ("bit/s", "kbit/s", "Mbit/s", "Gbit/s"))


def shell_word(path: object) -> str:
    """Return a path quoted for a shell, and not taken for an option."""
    text = str(path)
    return shlex.quote(f"./{text}" if text.startswith("-") else text)


def says_in_use(directory: object) -> str:
    """Return the error for a directory that another crawl holds, with the remedy."""
    shown = shell_word(directory)
    return (
        f"{directory} is in use by another crawl; `gossamer status {shown}` shows it, `gossamer stop {shown}` ends it"
    )


def _scale(number: float, units: Sequence[str]) -> str:
    for unit in units[:-1]:
        if number < 1000:
            return f"{number:.1f} {unit}"
        number /= 1000
    return f"{number:,.1f} {units[-1]}"


def duration(seconds: float, decimals: int = 0) -> str:
    """Return a duration in one or two units: 8 s, 2 min 5 s, 3 h 12 min, 2 d 4 h. `decimals` applies below a minute."""
    minutes, s = divmod(max(0, round(seconds)), 60)
    hours, minutes_left = divmod(minutes, 60)
    days, hours_left = divmod(hours, 24)
    if not minutes:
        return f"{max(0.0, seconds):.{decimals}f} s"
    if not hours:
        return f"{minutes} min {s} s"
    if not days:
        return f"{hours} h {minutes_left} min"
    return f"{days} d {hours_left} h"


def iso_time(at: float, unit: Literal["seconds", "milliseconds", "microseconds"] = "seconds", zone: str = "Z") -> str:
    """Return a wall time in ISO 8601, UTC, truncated to `unit`; `zone` is the suffix, `Z` or `+00:00`."""
    return datetime.fromtimestamp(at, UTC).replace(tzinfo=None).isoformat(timespec=unit) + zone


def instant(at: float) -> str:
    """Return a wall time as `why` shows it: to the millisecond."""
    return iso_time(at, "milliseconds", "+00:00")


def cost_text(cpu_s: Mapping[str, float], requests: int, disk_bytes: int, memory_bytes: int) -> str:
    """Describe the resources of its machine that a crawl used, with its processor time by stage."""
    stages = ", ".join(f"{name} {spent_s:,.1f}" for name, spent_s in cpu_s.items() if spent_s)
    return (
        f"{sum(cpu_s.values()):,.1f} s of processor time ({stages}), {counted(requests, 'request')}, "
        f"{size(disk_bytes)} on disk, {size(memory_bytes)} of memory at most"
    )
