"""Mix-ups: links to origins of the same host at which another protocol is spoken, or none."""

from __future__ import annotations

from gossamer.lab.simweb.answers import Answer, Made
from gossamer.lab.simweb.sheet import Place, Sheet, leaf

DEAD_PORTS = (1, 7, 9)
"""Closed on loopback: no server uses them."""
DEAD_AT = "/dead_ports/"
SCHEMES_AT = "/schemes/"


def dead_ports(place: Place) -> dict[str, Made]:
    """Return a corner whose pages also link to dead ports of the host."""
    found = {}
    index = Sheet(place, DEAD_AT, "Dead ports")
    for number, port in enumerate(DEAD_PORTS, 1):
        path, dead = f"{DEAD_AT}{number}.html", f"http://{place.host.name}:{port}/page.html"
        index.anchor(dead, dead).anchor(path)
        found[path] = leaf(place, path)
    return found | {DEAD_AT: index.made()}


def schemes(place: Place) -> dict[str, Made]:
    """Return a corner that links to https on the port for http, and to a page that answers as a port for TLS does."""
    secure = f"https://{place.host.name}{place.port}{SCHEMES_AT}secure.html"
    alert, plain = f"{SCHEMES_AT}alert", f"{SCHEMES_AT}plain.html"
    index = Sheet(place, SCHEMES_AT, "Schemes").anchor(secure, secure, optional=True).anchor(alert).anchor(plain)
    answered = Made((Answer(200, (), b"", "alert"),), also=("connect_error", "tls_error", "host_closed"), once=False)
    return {SCHEMES_AT: index.made(), alert: answered, plain: leaf(place, plain)}


def ttl_0(place: Place) -> dict[str, Made]:
    """Return a corner of ordinary pages: what is odd is the name, whose addresses hold for no time at all."""
    at = "/ttl_0/"
    index = Sheet(place, at, "No time")
    paths = [f"{at}{number}.html" for number in range(1, 6)]
    for path in paths:
        index.anchor(path)
    return {at: index.made(), **{path: leaf(place, path) for path in paths}}
