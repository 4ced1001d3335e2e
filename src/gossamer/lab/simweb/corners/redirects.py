"""Redirects: chains within and beyond the limit, loops, to other hosts, to another spelling of the same address."""

from __future__ import annotations

from gossamer.lab.simweb.answers import HTML, Answer, Made, Mark
from gossamer.lab.simweb.sheet import Place, Sheet, leaf

AT = "/redirects/"
LED_NOWHERE = ("fetched", "http_error", "protocol_error", "unsupported")
LONG = 8
"""Redirects in the long chain: more than any sane limit of hops between five and seven."""


def pages(place: Place) -> dict[str, Made]:
    """Return the corner. A same-host `Location` is written relative, absolute, and with a fragment in turn."""
    origin = place.origin
    found = {
        f"{AT}short-1": _moved(301, "short-2", origin + f"{AT}short-2"),
        f"{AT}short-2": _moved(302, f"{AT}short-3", origin + f"{AT}short-3"),
        f"{AT}short-3": _moved(307, f"{origin}{AT}end.html", f"{origin}{AT}end.html"),
        f"{AT}see-other": _moved(303, "../redirects/seen.html#here", origin + f"{AT}seen.html"),
        f"{AT}permanent": _moved(308, "./kept.html", origin + f"{AT}kept.html"),
        f"{AT}loop-a": _moved(302, f"{AT}loop-b", origin + f"{AT}loop-b"),
        f"{AT}loop-b": _moved(302, f"{AT}loop-a", origin + f"{AT}loop-a"),
        f"{AT}itself": _itself(place),
        f"{AT}away": _away(place),
        f"{AT}nowhere": _astray(f"{origin}{AT}nowhere"),
        f"{AT}mail": _astray("mailto:nobody@example.org", ("Location", "mailto:nobody@example.org")),
        f"{AT}%7Etilde": _moved(301, f"{AT}~tilde", origin + f"{AT}~tilde"),
        f"{AT}~tilde": _spelled(leaf(place, f"{AT}~tilde")),
    }
    for k in range(1, LONG):
        found[f"{AT}long-{k}"] = _moved(301, f"long-{k + 1}", f"{origin}{AT}long-{k + 1}")
    for end in (f"{AT}end.html", f"{AT}seen.html", f"{AT}kept.html", f"{AT}long-{LONG}"):
        found[end] = leaf(place, end)
    found[AT] = _index(place)
    return found


def _index(place: Place) -> Made:
    sheet = Sheet(place, AT, "Redirects")
    for name in ("short-1", "long-1", "see-other", "permanent", "loop-a", "itself", "away", "nowhere", "mail"):
        sheet.anchor(AT + name)
    key = f"{place.origin}{AT}~tilde"
    return sheet.anchor(f"{AT}%7Etilde", f"{place.origin}{AT}%7Etilde", key=key).made()


def _moved(status: int, location: str, to: str, also: tuple[str, ...] = ()) -> Made:
    answer = Answer(status, (*HTML, ("Location", location)), b"<p>It is elsewhere.\n")
    return Made((answer,), (Mark(to, "redirect"),), also)


def _itself(place: Place) -> Made:
    # Its target has its own key: the hops of one entry, until the limit ends them.
    made = _moved(302, f"{AT}itself", f"{place.origin}{AT}itself", ("http_error", "protocol_error"))
    return Made(made.answers, made.marks, made.also, once=False)


def _astray(url: str, *headers: tuple[str, str]) -> Made:
    """Return a redirect to no page; crawlers differ on what that is."""
    return Made((Answer(302, (*HTML, *headers)),), (Mark(url, "redirect", optional=True),), LED_NOWHERE)


def _away(place: Place) -> Made:
    url = place.front(place.other())
    return _moved(301, url, url)


def _spelled(made: Made) -> Made:
    return Made(made.answers, made.marks, made.also, once=False, links_optional=True)
