"""Private: what the various robots.txt open and close. All of it is linked from the front page."""

from __future__ import annotations

from gossamer.lab.simweb.answers import Answer, Made
from gossamer.lab.simweb.sheet import Place, leaf

AT = "/private/"
NAMES = (
    "", "notes.html", "open/", "open/report.html", "open/report.pdf", "list?print=1", "list?page=1", "deep/list?print=1"
)  # fmt: skip
PDF = "/papers/report.pdf"
FRONT = (*(AT + name for name in NAMES), PDF)


def pages(place: Place) -> dict[str, Made]:
    """Return the corner."""
    found = {AT + name: leaf(place, AT + name) for name in NAMES if not name.endswith(".pdf")}
    pdf = Made((Answer(200, (("Content-Type", "application/pdf"),), b"%PDF-1.4\n%%EOF\n"),))
    return found | {f"{AT}open/report.pdf": pdf, PDF: pdf}
