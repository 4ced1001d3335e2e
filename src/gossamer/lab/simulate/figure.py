"""Figure: a result as one HTML page with its drawing inside (SVG), or as the SVG alone; it fetches nothing."""

from collections.abc import Iterator, Sequence
from html import escape
from math import ceil, floor, log10

from gossamer.lab.simulate.options import SimulateOptions
from gossamer.lab.simulate.result import LIMITS, Limit, Sample, Simulated
from gossamer.lab.simulate.text import as_text
from gossamer.model.words import duration

WIDTH = 880
HEIGHT = 190
LEFT = 74
RIGHT = 165
TOP = 30
BOTTOM = 30
COLOURS: dict[Limit, str] = {
    "cpu": "#c2410c", "network": "#7c3aed", "concurrency": "#0e7490", "workbench": "#b45309", "politeness": "#15803d",
    "hosts": "#64748b",
}  # fmt: skip
INKS = ("#1d4ed8", "#15803d", "#c2410c", "#7c3aed")
TICKS = 4
PANELS = (
    ("pages/s", (("pages/s", "pages_per_s"),)),
    ("hosts", (("with work", "hosts_active"), ("on workbenches", "hosts_benched"), ("found", "hosts_known"))),
    ("URLs", (("queued", "pending"), ("found", "discovered"), ("pages", "pages"))),
    ("busy, %", (("processors", "cpu_share"), ("network", "network_share"), ("requests at once", "slots_share"))),
)
"""Each with its lines and their fields."""

Line = tuple[str, Sequence[tuple[float, float]]]
"""A name, and points of seconds and values."""


def as_html(result: Simulated, options: SimulateOptions, given: frozenset[str] = frozenset()) -> str:
    """Return one HTML page with the drawing and the text."""
    title = f"{options.preset or 'A crawl'}, simulated"
    text = escape(as_text(result, options, given))
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head><meta charset="utf-8"><title>{escape(title)}</title>\n'
        '<meta name="viewport" content="width=device-width">'
        "<style>body{font:15px/1.45 system-ui,sans-serif;max-width:960px;margin:2em auto;padding:0 1em;color:#0f172a}"
        "pre{font:13px/1.4 ui-monospace,monospace;background:#f8fafc;padding:1em;overflow-x:auto}"
        "svg{max-width:100%;height:auto}</style></head>\n"
        f'<body><main>\n<h1>{escape(title)}</h1>\n{as_svg(result)}\n<pre tabindex="0">{text}</pre>\n'
        "</main></body>\n</html>\n"
    )


def as_svg(result: Simulated) -> str:
    """Return the drawing: rates and what limits them, hosts, the queue, and how busy the machines are."""
    end_s = result.intervals[-1].end_s if result.intervals else 1.0
    drawn = "".join(
        _panel(
            nth * HEIGHT, name, end_s, [(line, _points(result, key)) for line, key in lines], None if nth else result
        )
        for nth, (name, lines) in enumerate(PANELS)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT * len(PANELS) + 20}" '
        f'width="{WIDTH}" role="img" aria-label="Rates, hosts, URLs and load over time" '
        f'font-family="system-ui,sans-serif" font-size="12">\n{drawn}</svg>'
    )


def _points(result: Simulated, field: str) -> list[tuple[float, float]]:
    """Return a field of the samples, or of the intervals at their middle, over time; shares in per cent."""
    if field in Sample.__struct_fields__:
        return [(one.at_s, getattr(one, field)) for one in result.samples]
    factor = 100 if field.endswith("_share") else 1
    return [((one.begin_s + one.end_s) / 2, factor * getattr(one, field)) for one in result.intervals]


def _panel(top: int, name: str, end_s: float, lines: Sequence[Line], shaded: Simulated | None = None) -> str:
    most = max((value for _, points in lines for _, value in points), default=0.0)
    ticks = _ticks(most)
    return "".join(
        [
            f'<text x="{LEFT}" y="{top + TOP - 10}" font-weight="600">{escape(name)}</text>\n',
            *(_shade(shaded, top, end_s) if shaded is not None else ()),
            *_axes(top, end_s, ticks),
            *(_line(line, INKS[number], top, end_s, ticks[-1], number) for number, line in enumerate(lines)),
        ]
    )


def _axes(top: int, end_s: float, ticks: Sequence[float]) -> Iterator[str]:
    for value in ticks:
        y = _y(value, ticks[-1], top)
        yield _rule(LEFT, WIDTH - RIGHT, y, "#cbd5e1", 0.6)
        yield f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end" fill="#475569">{_short(value)}</text>\n'
    for number in range(TICKS + 1):
        at_s = end_s * number / TICKS
        x = _x(at_s, end_s)
        y = top + HEIGHT - BOTTOM + 16
        yield f'<text x="{x:.1f}" y="{y}" text-anchor="middle" fill="#475569">{duration(at_s, 1)}</text>\n'


def _shade(result: Simulated, top: int, end_s: float) -> Iterator[str]:
    for one in result.intervals:
        x = _x(one.begin_s, end_s)
        width = _x(one.end_s, end_s) - _x(one.begin_s, end_s)
        yield (
            f'<rect x="{x:.1f}" y="{top + TOP}" width="{width:.2f}" height="{HEIGHT - TOP - BOTTOM}" '
            f'fill="{COLOURS[one.limit]}" fill-opacity="0.13"><title>{escape(LIMITS[one.limit])}</title></rect>\n'
        )
    for number, (limit, share) in enumerate(list(result.limits.items())[:5]):
        y = top + TOP + 34 + 17 * number
        ink = COLOURS[limit]
        x = WIDTH - RIGHT + 12
        yield f'<rect x="{x}" y="{y - 9}" width="10" height="10" fill="{ink}" fill-opacity="0.35"/>\n'
        yield f'<text x="{WIDTH - RIGHT + 27}" y="{y}">{limit} {share:.0%}</text>\n'


def _line(line: Line, ink: str, top: int, end_s: float, most: float, number: int) -> str:
    name, points = line
    path = " ".join(f"{_x(at, end_s):.1f},{_y(value, most, top):.1f}" for at, value in points)
    y = top + TOP + 12 + 17 * number
    return (
        f'<polyline points="{path}" fill="none" stroke="{ink}" stroke-width="1.6"/>\n'
        f"{_rule(WIDTH - RIGHT + 10, WIDTH - RIGHT + 24, y - 4, ink, 2)}"
        f'<text x="{WIDTH - RIGHT + 27}" y="{y}">{escape(name)}</text>\n'
    )


def _rule(left: float, right: float, y: float, ink: str, width: float) -> str:
    return f'<line x1="{left}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}" stroke="{ink}" stroke-width="{width}"/>\n'


def _x(at_s: float, end_s: float) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * at_s / end_s


def _y(value: float, most: float, top: int) -> float:
    return top + HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * value / most


def _ticks(most: float) -> list[float]:
    """Return 0 and round numbers up to one that is not less than `most`."""
    if most <= 0:
        return [0.0, 1.0]
    raw = most / TICKS
    power = 10.0 ** floor(log10(raw))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= raw)
    return [step * number for number in range(ceil(most / step - 1e-9) + 1)]


def _short(value: float) -> str:
    for size, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g} {unit}"
    return f"{value:g}"
