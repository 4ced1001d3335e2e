"""SVG: the figures of a report as drawings. Colours come from the page that holds them."""

from collections.abc import Iterable, Sequence
from html import escape
from math import ceil, floor, log10

Point = tuple[float, float, str]
"""Place, value, and the text that is shown under the pointer."""
Label = tuple[float, str]
"""Place and text."""
Course = tuple[str, Sequence[tuple[float, float]]]
"""A name, and places and values."""

WIDE = 1120
NARROW = 520
HEIGHT = 230
"""Near the pixels that they are shown in, so that their letters have one size."""
_LEFT = 56
_RIGHT = 14
_TOP = 24
_BOTTOM = 26
_INNER_HEIGHT = HEIGHT - _TOP - _BOTTOM
_TICKS = 5
_LABELS_MAX = 8
_LABELS_APART = 1 / 6
"""Labels of uneven places need this share of the axis each."""
_NEAR_END = 0.98
_KEYS_APART = 115


def area(
    points: Sequence[Point], labels: Sequence[Label], unit: str, shaded: Sequence[tuple[float, float]] = ()
) -> str:
    """Draw values over time, wide: `points` in even steps, `labels` below, `shaded` spans in the points' x."""
    if len(points) < 2:
        return ""
    first = points[0][0]
    span = points[-1][0] - first
    top = _round_up(max(y for _, y, _ in points))
    places = [((x - first) / span, y / top) for x, y, _ in points]
    parts = [
        band("shade", max(0.0, (begin - first) / span), min(1.0, (end - first) / span))
        for begin, end in shaded
        if end > first and begin < first + span
    ]
    parts.append(f'<polygon class="fill" points="{_path([(0.0, 0.0), *places, (1.0, 0.0)])}"/>')
    parts.append(f'<polyline class="line" points="{_path(places)}"/>')
    half = 0.5 / (len(points) - 1)
    parts += [band("tell", place - half, place + half, one[2]) for (place, _), one in zip(places, points, strict=True)]
    marks = [((x - first) / span, label) for x, label in labels if x >= first]
    return _drawing(WIDE, [*_value_axis(top, unit, WIDE), *_place_axis(marks, WIDE), *parts])


def lines(courses: Sequence[Course], last: float, labels: Sequence[Label], unit: str) -> str:
    """Draw several courses from 0 to `last`, wide; the caller frames them. Line and name of the nth are `inkN`."""
    top = _round_up(max((y for _, points in courses for _, y in points), default=0.0))
    parts = [*_value_axis(top, unit, WIDE), *_place_axis([(x / last, label) for x, label in labels], WIDE)]
    for nth, (name, points) in enumerate(courses):
        path = _path([(x / last, y / top) for x, y in points])
        parts.append(f'<polyline class="line ink{nth}" points="{path}"/>{key(nth + 1, f"ink{nth}", name)}')
    return "".join(parts)


def key(place: int, kind: str, text: str) -> str:
    """Return a name above a drawing, right of the unit, in the colour of what it names."""
    return f'<text class="key {kind}" x="{_LEFT + _KEYS_APART * place}" y="{_TOP - 10}">{escape(text)}</text>'


def band(kind: str, begin: float, end: float, title: str = "", width: int = WIDE) -> str:
    """Return a rectangle of full height between two shares of the axis; `title` is shown under the pointer."""
    x = _LEFT + _inner(width) * begin
    wide = max(1.0, _inner(width) * (end - begin))
    shown = f"<title>{escape(title)}</title>" if title else ""
    return f'<rect class="{kind}" x="{x:.1f}" y="{_TOP}" width="{wide:.1f}" height="{_INNER_HEIGHT}">{shown}</rect>'


def columns(bars: Sequence[tuple[str, float, str]], unit: str) -> str:
    """Draw a column for each (label, value, text under the pointer)."""
    if not bars:
        return ""
    top = _round_up(max(value for _, value, _ in bars))
    share = 1 / len(bars)
    step = _inner(NARROW) * share
    parts = []
    for index, (_, value, title) in enumerate(bars):
        x = _LEFT + index * step
        y = _down(value / top)
        parts.append(
            f'<rect class="bar" x="{x + step * 0.1:.1f}" y="{y:.1f}" width="{step * 0.8:.1f}" '
            f'height="{_down(0.0) - y:.1f}"/>'
        )
        parts.append(band("tell", index * share, (index + 1) * share, title, NARROW))
    every = ceil(len(bars) / _LABELS_MAX)
    marks = [((index + 0.5) / len(bars), label) for index, (label, _, _) in enumerate(bars) if index % every == 0]
    return _drawing(NARROW, [*_value_axis(top, unit, NARROW), *_place_axis(marks, NARROW), *parts])


def log_log(points: Sequence[Point], labels: Sequence[str], unit: str) -> str:
    """Draw points on two logarithmic axes; what is not above zero has no place on them. `labels` are the points'."""
    shown = [(log10(x), log10(y), title, label) for (x, y, title), label in zip(points, labels, strict=True) if x and y]
    if not shown:
        return ""
    left = shown[0][0]
    right = max(shown[-1][0], shown[0][0] + 1)
    top = max(1.0, ceil(max(y for _, y, _, _ in shown)))
    parts = []
    marks: list[tuple[float, str]] = []
    for x, y, title, label in shown:
        place = (x - left) / (right - left)
        if not marks or place - marks[-1][0] >= _LABELS_APART:
            marks.append((place, label))
        parts.append(
            f'<circle class="dot" cx="{_LEFT + _inner(NARROW) * place:.1f}" cy="{_down(y / top):.1f}" r="5">'
            f"<title>{escape(title)}</title></circle>"
        )
    lines = [_line_at(exponent / top, f"{10**exponent:,}", NARROW) for exponent in range(int(top) + 1)]
    return _drawing(NARROW, [*lines, _unit(unit), *_place_axis(marks, NARROW), *parts])


def _inner(width: int) -> int:
    return width - _LEFT - _RIGHT


def _drawing(width: int, parts: Sequence[str]) -> str:
    # On a phone the page gives wide ones another ratio.
    return f'<svg viewBox="0 0 {width} {HEIGHT}" preserveAspectRatio="none">{"".join(parts)}</svg>'


def _value_axis(top: float, unit: str, width: int) -> list[str]:
    lines = [_line_at(tick / _TICKS, _short(top * tick / _TICKS), width) for tick in range(_TICKS + 1)]
    return [*lines, _unit(unit)]


def _line_at(share: float, label: str, width: int) -> str:
    y = _down(share)
    return (
        f'<line class="grid" x1="{_LEFT}" x2="{width - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        f'<text class="tick" x="{_LEFT - 9}" y="{y + 4:.1f}" text-anchor="end">{escape(label)}</text>'
    )


def _unit(unit: str) -> str:
    return f'<text class="unit" x="{_LEFT}" y="{_TOP - 10}">{escape(unit)}</text>'


def _place_axis(marks: Sequence[tuple[float, str]], width: int) -> list[str]:
    return [
        f'<text class="tick at" x="{_LEFT + _inner(width) * share:.1f}" y="{HEIGHT - _BOTTOM + 18}" '
        f'text-anchor="{"end" if share > _NEAR_END else "middle"}">{escape(label)}</text>'
        for share, label in marks
    ]


def _path(places: Iterable[tuple[float, float]]) -> str:
    return " ".join(f"{_LEFT + _inner(WIDE) * x:.1f},{_down(y):.1f}" for x, y in places)


def _down(share: float) -> float:
    return _TOP + _INNER_HEIGHT * (1.0 - share)


def _round_up(most: float) -> float:
    if most <= 0:
        return 1.0
    power = 10.0 ** floor(log10(most))
    return next(power * step for step in (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10) if most <= power * step * (1 + 1e-9))


def _short(value: float) -> str:
    for unit in ("", "k", "M", "G"):
        if abs(value) < 1000:
            return f"{value:.3g}{unit}"
        value /= 1000
    return f"{value:.3g}T"
