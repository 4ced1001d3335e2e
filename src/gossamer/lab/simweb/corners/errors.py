"""Errors: pages that are gone, refused, broken once or for ever, and servers that ask for a pause."""

from __future__ import annotations

from gossamer.lab.simweb.answers import TEXT, Answer, Made
from gossamer.lab.simweb.sheet import Place, Sheet, leaf

AT = "/errors/"


def pages(place: Place) -> dict[str, Made]:
    """Return the corner."""
    wait_s = place.options.retry_after_s
    found = {f"{AT}{status}": Made((_said(status),)) for status in (400, 401, 403, 404, 410, 451)}
    found |= {
        f"{AT}500": Made((_said(500),), once=False),
        f"{AT}500-once": _after(place, f"{AT}500-once", _said(500)),
        f"{AT}429-once": _after(place, f"{AT}429-once", _said(429)),
        f"{AT}503-seconds": _after(place, f"{AT}503-seconds", _said(503, wait_s)),
        f"{AT}503-date": _after(place, f"{AT}503-date", _said(503, wait_s, as_date=True)),
        f"{AT}429-seconds": _after(place, f"{AT}429-seconds", _said(429, wait_s)),
    }
    sheet = Sheet(place, AT, "Errors")
    for path in found:
        sheet.anchor(path)
    # Nothing answers here: an ordinary dead link.
    found[AT] = sheet.anchor(f"{AT}missing/").made()
    return found | {path: leaf(place, path) for path in _proofs(found)}


def _said(status: int, retry_after_s: int = 0, *, as_date: bool = False) -> Answer:
    return Answer(status, TEXT, b"no\n", retry_after_s=retry_after_s, retry_as_date=as_date)


def _after(place: Place, path: str, *first: Answer) -> Made:
    """Return a page that is there after the first attempts; its link proves that somebody came again."""
    proof = f"{path}/proof.html"
    made = Sheet(place, path).anchor(proof).made()
    return Made((*first, *made.answers), made.marks, once=False)


def _proofs(found: dict[str, Made]) -> list[str]:
    return [f"{path}/proof.html" for path, made in found.items() if len(made.answers) > 1]
