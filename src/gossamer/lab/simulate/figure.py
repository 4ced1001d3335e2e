"""Figure: a result as one HTML page with its drawing inside (SVG), or as the SVG alone; it fetches nothing."""

import pkgutil
from collections.abc import Iterator
from html import escape

from gossamer.lab.simulate.options import SimulateOptions
from gossamer.lab.simulate.result import LIMITS, Sample, Simulated
from gossamer.lab.simulate.text import as_text
from gossamer.results.report import svg
from gossamer.results.report.html import page_of, time_labels

PANELS = (
    ("pages/s", (("pages/s", "pages_per_s"),)),
    ("hosts", (("with work", "hosts_active"), ("on workbenches", "hosts_benched"), ("found", "hosts_known"))),
    ("URLs", (("queued", "pending"), ("found", "discovered"), ("pages", "pages"))),
    ("busy, %", (("processors", "cpu_share"), ("network", "network_share"), ("requests at once", "slots_share"))),
)
"""Each with its lines and their fields."""
STYLE = (pkgutil.get_data("gossamer.lab.simulate", "figure.css") or b"").decode()
"""What the lines and limits look like, on the page of a report as in a file of their own."""


def as_html(result: Simulated, options: SimulateOptions, given: frozenset[str] = frozenset()) -> str:
    """Return one HTML page with the drawing and the text."""
    parts = (as_svg(result), f"<pre>{escape(as_text(result, options, given))}</pre>")
    body = "".join(f'<section tabindex="0" style="grid-column:1/-1;overflow-x:auto">{part}</section>' for part in parts)
    return page_of(escape(options.preset or "A crawl"), "simulation of a crawl", body)


def as_svg(result: Simulated) -> str:
    """Return the drawing: rates and what limits them, hosts, the queue, and how busy the machines are."""
    end_s = result.intervals[-1].end_s if result.intervals else 1.0
    labels = time_labels(end_s)
    drawn = "".join(_limits(result, end_s))
    for nth, (unit, fields) in enumerate(PANELS):
        courses = [(name, _points(result, field)) for name, field in fields]
        drawn += f'<g transform="translate(0 {nth * svg.HEIGHT})">{svg.lines(courses, end_s, labels, unit)}</g>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {svg.WIDE} {svg.HEIGHT * len(PANELS)}" class="panels" '
        f'role="img" aria-label="Rates, hosts, URLs and load over time"><style>{STYLE}</style>{drawn}</svg>'
    )


def _limits(result: Simulated, end_s: float) -> Iterator[str]:
    """Yield what limited the crawl: colours behind the first panel, and their names."""
    for one in result.intervals:
        yield svg.band(f"limit {one.limit}", one.begin_s / end_s, one.end_s / end_s, LIMITS[one.limit])
    for place, (limit, share) in enumerate(list(result.limits.items())[:5], 3):
        yield svg.key(place, limit, f"{limit} {share:.0%}")


def _points(result: Simulated, field: str) -> list[tuple[float, float]]:
    """Return a field of the samples, or of the intervals at their middle, over time; shares in per cent."""
    if field in Sample.__struct_fields__:
        return [(one.at_s, getattr(one, field)) for one in result.samples]
    factor = 100 if field.endswith("_share") else 1
    return [((one.begin_s + one.end_s) / 2, factor * getattr(one, field)) for one in result.intervals]
