"""Words: numbers, sizes and times as people read them; what strangers wrote, made harmless."""

from __future__ import annotations

from datetime import UTC, datetime

from gossamer.report.figures import Bucket


def printable(text: str) -> str:
    r"""Return the text with everything that does not show itself as `\x1b`, `\u202e` and the like."""
    if text.isprintable():
        return text
    return "".join(mark if mark.isprintable() else mark.encode("unicode_escape").decode() for mark in text)


def size(size_bytes: float) -> str:
    """Return bytes in decimal units, three figures or so."""
    for unit in ("B", "KB", "MB", "GB", "TB"):
        if size_bytes < 1000:
            return f"{size_bytes:.0f} {unit}" if unit == "B" else f"{size_bytes:.1f} {unit}"
        size_bytes /= 1000
    return f"{size_bytes:,.1f} PB"


def binary_size(size_bytes: int) -> str:
    """Return a power of two in its own units."""
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if size_bytes < 1024:
            return f"{size_bytes} {unit}"
        size_bytes //= 1024
    return f"{size_bytes:,} PiB"


def bit_rate(bits_s: float) -> str:
    """Return bits a second in decimal units."""
    for unit in ("bit/s", "kbit/s", "Mbit/s"):
        if bits_s < 1000:
            return f"{bits_s:.1f} {unit}"
        bits_s /= 1000
    return f"{bits_s:,.1f} Gbit/s"


def instant(wall_s: float | None) -> str:
    """Return wall time in UTC, to the second."""
    return "?" if wall_s is None else f"{datetime.fromtimestamp(wall_s, UTC):%Y-%m-%d %H:%M:%S}"


def duration(lasted_s: float) -> str:
    """Return a time in the two units that matter."""
    days, rest = divmod(round(lasted_s), 86_400)
    if days:
        return f"{days} d {rest // 3600} h"
    hours, rest = divmod(rest, 3600)
    if hours:
        return f"{hours} h {rest // 60} min"
    return f"{rest // 60} min {rest % 60} s" if rest >= 60 else f"{lasted_s:.1f} s"


def seconds(lasted_s: float) -> str:
    """Return a short time: in milliseconds below one second."""
    return f"{lasted_s:.2f} s" if lasted_s >= 1 else f"{1000 * lasted_s:.1f} ms"


def bucket_name(bucket: Bucket, *, of_bytes: bool) -> str:
    """Return where a bucket begins; it ends below twice that."""
    return binary_size(bucket.least) if of_bytes else f"{bucket.least:,}"
