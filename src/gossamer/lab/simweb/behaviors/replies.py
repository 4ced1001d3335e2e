"""Replies: errors, redirects, walls, and servers that hang, flood, or speak another protocol than expected."""

from collections.abc import Mapping

from gossamer.lab.simweb.behaviors import read
from gossamer.lab.simweb.sheet import HTML, TEXT, Made, Mark, PagePlace, ServedAnswer, Sheet

_TABLES = read("replies.toml")


def errors(place: PagePlace) -> dict[str, Made]:
    """Return pages that are gone, refused, broken once or for ever, and servers that ask for a pause."""
    wait_s = place.options.retry_after_s
    found = {f"{status}": Made((_status_answer(status),)) for status in (400, 401, 403, 404, 410, 451)}
    found["500"] = Made((_status_answer(500),), once=False)
    first = {
        "500-once": _status_answer(500),
        "429-once": _status_answer(429),
        "503-seconds": _status_answer(503, wait_s),
        "503-date": _status_answer(503, wait_s, as_date=True),
        "429-seconds": _status_answer(429, wait_s),
    }
    found |= {name: _after(place, name, answer) for name, answer in first.items()}
    # Nothing answers at the last one: an ordinary dead link.
    return found | place.index("Errors", [*found, "missing/"]) | place.leaves(map(_proof, first))


def _status_answer(status: int, retry_after_s: int = 0, *, as_date: bool = False) -> ServedAnswer:
    return ServedAnswer(status, TEXT, b"no\n", retry_after_s=retry_after_s, retry_as_date=as_date)


def _after(place: PagePlace, name: str, first: ServedAnswer) -> Made:
    """Return a page that is there after the first attempt; its link proves a second visit."""
    made = Sheet(place, name).anchors([_proof(name)]).page()
    return Made((first, *made.answers), made.marks, once=False)


def _proof(name: str) -> str:
    return f"{name}/proof.html"


LED_NOWHERE = ("fetched", "http_error", "protocol_error", "unsupported")
LONG = 8
"""Redirects in the long chain: more than any sane limit of hops between five and seven."""


def redirects(place: PagePlace) -> dict[str, Made]:
    """Return chains within and beyond the limit, loops, to other hosts, to another spelling of the same address. A
    same-host `Location` is written relative, absolute, and with a fragment in turn.
    """
    path = place.path
    url = place.url
    front = place.front(place.other())
    found = {
        name: _redirect(status, location.format(at=place.at, url=url("")), url(to))
        for name, (status, location, to) in _TABLES["redirects"].items()
    }
    found |= {
        # Its target has its own key: the hops of one entry, until the limit ends them.
        "itself": _redirect(302, path("itself"), url("itself"), ("http_error", "protocol_error"), once=False),
        "away": _redirect(301, front, front),
        "nowhere": _astray(url("nowhere")),
        "mail": _astray("mailto:nobody@example.org", ("Location", "mailto:nobody@example.org")),
        "~tilde": Made(place.leaf("~tilde").answers, once=False, links_optional=True),
    }
    for k in range(1, LONG):
        found[f"long-{k}"] = _redirect(301, f"long-{k + 1}", url(f"long-{k + 1}"))
    found |= place.leaves(("end.html", "seen.html", "kept.html", f"long-{LONG}"))
    names = ("short-1", "long-1", "see-other", "permanent", "loop-a", "itself", "away", "nowhere", "mail")
    sheet = Sheet(place, "", "Redirects").anchors(names)
    return found | {"": sheet.anchor(path("%7Etilde"), url("%7Etilde"), key=url("~tilde")).page()}


def _redirect(status: int, location: str, to: str, also: tuple[str, ...] = (), *, once: bool = True) -> Made:
    answer = ServedAnswer(status, (*HTML, ("Location", location)), b"<p>It is elsewhere.\n")
    return Made((answer,), (Mark(to, "redirect"),), also, once)


def _astray(url: str, *headers: tuple[str, str]) -> Made:
    """Return a redirect to no page; crawlers differ on what that is."""
    return Made((ServedAnswer(302, (*HTML, *headers)),), (Mark(url, "redirect", optional=True),), LED_NOWHERE)


HANGING = tuple(_TABLES["hanging"].items())
"""Manners of hanging, each with the outcomes that are as right as the first."""


def hangs(place: PagePlace) -> dict[str, Made]:
    """Return an index and one page that never comes whole: servers that break off, stall, drip, or speak no HTTP. Which
    it is goes round among the hosts; one a host, so that none is given up.
    """
    having = [host.index for host in place.hosts if "hangs" in host.behaviors]
    manner, also = HANGING[having.index(place.host.index) % len(HANGING)]
    answer = ServedAnswer(200, HTML, b"<p>" + place.some(20, manner).encode(), manner)
    return place.index("Hangs", [manner]) | {manner: Made((answer,), also=(*also, "host_closed"), once=False)}


BYTEWISE_SENTENCES = 500
"""Some 50 KB in chunks of one byte, with a link at the end that proves that they were read."""


def floods(place: PagePlace) -> dict[str, Made]:
    """Return answers in the most expensive framing, and answers without end that hold little or nothing."""
    text = place.some(BYTEWISE_SENTENCES, place.path("bytes"))
    bytewise = Sheet(place, "bytes").tag(f"<p>{text}</p>").anchors(["proof.html"])
    found = {"bytes": Made((ServedAnswer(200, HTML, bytewise.html().encode(), "bytewise"),), bytewise.marks)}
    for manner, also in _TABLES["floods"].items():
        found[manner] = Made((ServedAnswer(200, HTML, b"", manner),), also=(*also, "host_closed"), once=False)
    return found | place.leaves(["proof.html"]) | place.index("Floods", found)


DEAD_PORTS = (1, 7, 9)
"""Closed on loopback: no server uses them."""


def dead_ports(place: PagePlace) -> dict[str, Made]:
    """Return pages that also link to dead ports of the host."""
    sheet = Sheet(place, "", "Dead ports")
    names = [f"{number}.html" for number in range(1, len(DEAD_PORTS) + 1)]
    for port, name in zip(DEAD_PORTS, names, strict=True):
        dead = f"http://{place.host.name}:{port}/page.html"
        sheet.anchor(dead, dead).anchors([name])
    return place.leaves(names) | {"": sheet.page()}


def schemes(place: PagePlace) -> dict[str, Made]:
    """Return pages that link to https on the port for http, and to a page that answers as a port for TLS does."""
    secure = f"https://{place.host.name}{place.options.port_suffix}{place.path('secure.html')}"
    sheet = Sheet(place, "", "Schemes").anchor(secure, secure, optional=True).anchors(["alert", "plain.html"])
    reply = Made((ServedAnswer(200, (), b"", "alert"),), also=("connect_error", "tls_error", "host_closed"), once=False)
    return {"": sheet.page(), "alert": reply} | place.leaves(["plain.html"])


def ttl_0(place: PagePlace) -> dict[str, Made]:
    """Return ordinary pages, of a host whose DNS records have a TTL of 0."""
    names = [f"{number}.html" for number in range(1, 6)]
    return place.index("No time", names) | place.leaves(names)


def walls(place: PagePlace) -> dict[str, Made]:
    """Return the pages: each wall, and two pages without one."""
    found = {name: Made((_answer(place, **one),), outcome="challenged") for name, one in _TABLES["challenges"].items()}
    found |= {name: Made((_answer(place, **one),)) for name, one in _TABLES["refusals"].items()}
    found["consent"] = _consent(place)
    about = "How a page with <code>window._cf_chl_opt</code> is recognized"
    found["about"] = Sheet(place, "about", "Walls").tag(about).anchors(["read.html"]).page()
    return found | place.index("Walls and what is none", found) | place.leaves(("agreed.html", "read.html"))


def _answer(place: PagePlace, status: int, markup: str, headers: Mapping[str, str] | None = None) -> ServedAnswer:
    body = f"<!DOCTYPE html>{markup}<a href={place.path('bait.html')}>bait</a>\n"
    return ServedAnswer(status, (*HTML, *(headers or {}).items()), body.encode())


def _consent(place: PagePlace) -> Made:
    """Return a page that asks for consent: it is marked, and a page otherwise."""
    form = '<form action="https://consent.google.com/save" method="post"><button>Accept</button></form>'
    made = Sheet(place, "consent").tag(form).anchors(["agreed.html"])
    head, _, rest = made.html().partition("<title>")
    body = f"{head}<title>Before you continue to Google</title>{rest.partition('</title>')[2]}"
    return Made((ServedAnswer(200, HTML, body.encode()),), made.marks)
