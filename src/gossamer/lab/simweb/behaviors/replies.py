"""Replies: errors, redirects, walls, and servers that hang, flood, or speak another protocol than expected."""

from __future__ import annotations

from gossamer.lab.simweb.sheet import HTML, TEXT, Headers, Made, Manner, Mark, PagePlace, ServedAnswer, Sheet, leaf

# Pages that are gone, refused, broken once or for ever, and servers that ask for a pause.

ERRORS = "/errors/"


def errors(place: PagePlace) -> dict[str, Made]:
    """Return the pages."""
    wait_s = place.options.retry_after_s
    found = {f"{ERRORS}{status}": Made((_said(status),)) for status in (400, 401, 403, 404, 410, 451)}
    found |= {
        f"{ERRORS}500": Made((_said(500),), once=False),
        f"{ERRORS}500-once": _after(place, f"{ERRORS}500-once", _said(500)),
        f"{ERRORS}429-once": _after(place, f"{ERRORS}429-once", _said(429)),
        f"{ERRORS}503-seconds": _after(place, f"{ERRORS}503-seconds", _said(503, wait_s)),
        f"{ERRORS}503-date": _after(place, f"{ERRORS}503-date", _said(503, wait_s, as_date=True)),
        f"{ERRORS}429-seconds": _after(place, f"{ERRORS}429-seconds", _said(429, wait_s)),
    }
    sheet = Sheet(place, ERRORS, "Errors")
    for path in found:
        sheet.anchor(path)
    # Nothing answers here: an ordinary dead link.
    found[ERRORS] = sheet.anchor(f"{ERRORS}missing/").made()
    return found | {path: leaf(place, path) for path in _proofs(found)}


def _said(status: int, retry_after_s: int = 0, *, as_date: bool = False) -> ServedAnswer:
    return ServedAnswer(status, TEXT, b"no\n", retry_after_s=retry_after_s, retry_as_date=as_date)


def _after(place: PagePlace, path: str, *first: ServedAnswer) -> Made:
    """Return a page that is there after the first attempts; its link proves a second visit."""
    proof = f"{path}/proof.html"
    made = Sheet(place, path).anchor(proof).made()
    return Made((*first, *made.answers), made.marks, once=False)


def _proofs(found: dict[str, Made]) -> list[str]:
    return [f"{path}/proof.html" for path, made in found.items() if len(made.answers) > 1]


# Chains within and beyond the limit, loops, to other hosts, to another spelling of the same address.

REDIRECTS = "/redirects/"
LED_NOWHERE = ("fetched", "http_error", "protocol_error", "unsupported")
LONG = 8
"""Redirects in the long chain: more than any sane limit of hops between five and seven."""


def redirects(place: PagePlace) -> dict[str, Made]:
    """Return the pages. A same-host `Location` is written relative, absolute, and with a fragment in turn."""
    origin = place.origin
    found = {
        f"{REDIRECTS}short-1": _moved(301, "short-2", origin + f"{REDIRECTS}short-2"),
        f"{REDIRECTS}short-2": _moved(302, f"{REDIRECTS}short-3", origin + f"{REDIRECTS}short-3"),
        f"{REDIRECTS}short-3": _moved(307, f"{origin}{REDIRECTS}end.html", f"{origin}{REDIRECTS}end.html"),
        f"{REDIRECTS}see-other": _moved(303, "../redirects/seen.html#here", origin + f"{REDIRECTS}seen.html"),
        f"{REDIRECTS}permanent": _moved(308, "./kept.html", origin + f"{REDIRECTS}kept.html"),
        f"{REDIRECTS}loop-a": _moved(302, f"{REDIRECTS}loop-b", origin + f"{REDIRECTS}loop-b"),
        f"{REDIRECTS}loop-b": _moved(302, f"{REDIRECTS}loop-a", origin + f"{REDIRECTS}loop-a"),
        f"{REDIRECTS}itself": _itself(place),
        f"{REDIRECTS}away": _away(place),
        f"{REDIRECTS}nowhere": _astray(f"{origin}{REDIRECTS}nowhere"),
        f"{REDIRECTS}mail": _astray("mailto:nobody@example.org", ("Location", "mailto:nobody@example.org")),
        f"{REDIRECTS}%7Etilde": _moved(301, f"{REDIRECTS}~tilde", origin + f"{REDIRECTS}~tilde"),
        f"{REDIRECTS}~tilde": _spelled(leaf(place, f"{REDIRECTS}~tilde")),
    }
    for k in range(1, LONG):
        found[f"{REDIRECTS}long-{k}"] = _moved(301, f"long-{k + 1}", f"{origin}{REDIRECTS}long-{k + 1}")
    for end in (
        f"{REDIRECTS}end.html",
        f"{REDIRECTS}seen.html",
        f"{REDIRECTS}kept.html",
        f"{REDIRECTS}long-{LONG}",
    ):
        found[end] = leaf(place, end)
    found[REDIRECTS] = _index(place)
    return found


def _index(place: PagePlace) -> Made:
    sheet = Sheet(place, REDIRECTS, "Redirects")
    for name in ("short-1", "long-1", "see-other", "permanent", "loop-a", "itself", "away", "nowhere", "mail"):
        sheet.anchor(REDIRECTS + name)
    key = f"{place.origin}{REDIRECTS}~tilde"
    return sheet.anchor(f"{REDIRECTS}%7Etilde", f"{place.origin}{REDIRECTS}%7Etilde", key=key).made()


def _moved(status: int, location: str, to: str, also: tuple[str, ...] = ()) -> Made:
    answer = ServedAnswer(status, (*HTML, ("Location", location)), b"<p>It is elsewhere.\n")
    return Made((answer,), (Mark(to, "redirect"),), also)


def _itself(place: PagePlace) -> Made:
    # Its target has its own key: the hops of one entry, until the limit ends them.
    made = _moved(302, f"{REDIRECTS}itself", f"{place.origin}{REDIRECTS}itself", ("http_error", "protocol_error"))
    return Made(made.answers, made.marks, made.also, once=False)


def _astray(url: str, *headers: tuple[str, str]) -> Made:
    """Return a redirect to no page; crawlers differ on what that is."""
    return Made((ServedAnswer(302, (*HTML, *headers)),), (Mark(url, "redirect", optional=True),), LED_NOWHERE)


def _away(place: PagePlace) -> Made:
    url = place.front(place.other())
    return _moved(301, url, url)


def _spelled(made: Made) -> Made:
    return Made(made.answers, made.marks, made.also, once=False, links_optional=True)


# Servers that break off, stall, drip, or speak no HTTP; one such page a host, so that none is given up.

HANGS = "/hangs/"
HANGING: tuple[tuple[Manner, tuple[str, ...]], ...] = (
    ("stall", ()),
    ("drip", ("fetched",)),
    ("cut", ("fetched", "connect_error")),
    ("reset", ("connect_error",)),
    ("empty", ("connect_error",)),
    ("garbage", ("connect_error", "unsupported", "fetched")),
)
"""What happens, and the outcomes that are as right as the first."""


def hangs(place: PagePlace) -> dict[str, Made]:
    """Return the pages: an index and one page that never comes whole. Which, goes round among the hosts."""
    having = [host.index for host in place.hosts if "hangs" in host.behaviors]
    manner, also = HANGING[having.index(place.host.index) % len(HANGING)]
    path = HANGS + manner
    answer = ServedAnswer(200, HTML, b"<p>" + place.some(20, manner).encode(), manner)
    broken = Made((answer,), also=(*also, "host_closed"), once=False)
    return {HANGS: Sheet(place, HANGS, "Hangs").anchor(path).made(), path: broken}


# Answers in the most expensive framing, and answers without end that hold little or nothing.

FLOODS = "/floods/"
BYTEWISE_SENTENCES = 500
"""Some 50 KB in chunks of one byte, with a link at the end that proves that they were read."""
ENDLESS_FLOODS: tuple[tuple[Manner, tuple[str, ...]], ...] = (
    ("flood_bytes", ("timeout", "too_large")),
    ("flood_extension", ("protocol_error", "timeout")),
    ("flood_folded", ("protocol_error", "timeout")),
    ("flood_interim", ("protocol_error", "timeout")),
    ("flood_headers", ("protocol_error", "timeout")),
    ("flood_trailers", ("protocol_error", "timeout", "fetched")),
    ("flood_head_bytes", ("protocol_error", "too_large")),
)
"""What happens, and the outcomes that are as right as the first (`truth.OUTCOME_OF_MANNER`)."""


def floods(place: PagePlace) -> dict[str, Made]:
    """Return the pages."""
    index = Sheet(place, FLOODS, "Floods")
    path, proof = f"{FLOODS}bytes", f"{FLOODS}proof.html"
    text = place.some(BYTEWISE_SENTENCES, path)
    bytewise = Sheet(place, path).tag(f"<p>{text}</p>").anchor(proof)
    found = {path: Made((ServedAnswer(200, HTML, bytewise.html().encode(), "bytewise"),), bytewise.marks)}
    for manner, also in ENDLESS_FLOODS:
        found[FLOODS + manner] = Made((ServedAnswer(200, HTML, b"", manner),), also=(*also, "host_closed"), once=False)
    for path in found:
        index.anchor(path)
    return found | {proof: leaf(place, proof), FLOODS: index.made()}


# Links to origins of the same host at which another protocol is spoken, or none.

DEAD_PORTS = (1, 7, 9)
"""Closed on loopback: no server uses them."""
DEAD_AT = "/dead_ports/"
SCHEMES = "/schemes/"


def dead_ports(place: PagePlace) -> dict[str, Made]:
    """Return pages that also link to dead ports of the host."""
    found = {}
    index = Sheet(place, DEAD_AT, "Dead ports")
    for number, port in enumerate(DEAD_PORTS, 1):
        path, dead = f"{DEAD_AT}{number}.html", f"http://{place.host.name}:{port}/page.html"
        index.anchor(dead, dead).anchor(path)
        found[path] = leaf(place, path)
    return found | {DEAD_AT: index.made()}


def schemes(place: PagePlace) -> dict[str, Made]:
    """Return pages that link to https on the port for http, and to a page that answers as a port for TLS does."""
    secure = f"https://{place.host.name}{place.port}{SCHEMES}secure.html"
    alert, plain = f"{SCHEMES}alert", f"{SCHEMES}plain.html"
    index = Sheet(place, SCHEMES, "Schemes").anchor(secure, secure, optional=True).anchor(alert).anchor(plain)
    answered = Made(
        (ServedAnswer(200, (), b"", "alert"),), also=("connect_error", "tls_error", "host_closed"), once=False
    )
    return {SCHEMES: index.made(), alert: answered, plain: leaf(place, plain)}


def ttl_0(place: PagePlace) -> dict[str, Made]:
    """Return ordinary pages: what is odd is the name, whose addresses hold for no time at all."""
    at = "/ttl_0/"
    index = Sheet(place, at, "No time")
    paths = [f"{at}{number}.html" for number in range(1, 6)]
    for path in paths:
        index.anchor(path)
    return {at: index.made(), **{path: leaf(place, path) for path in paths}}


WALLS = "/walls/"
CHALLENGES: tuple[tuple[str, int, Headers, str], ...] = (
    ("header", 403, (("cf-mitigated", "challenge"),), "<title>One moment</title>"),
    ("markup", 403, (), "<title>Access Denied</title><p>Reference: https://errors.edgesuite.net/18.2"),
    ("page", 200, (), "<title>Just a moment...</title><script>window._cf_chl_opt={};</script>"),
    ("busy", 503, (), "<title>Robot Challenge Screen</title><script src=/.well-known/sgcaptcha/x></script>"),
)
"""Name, status, headers and markup. Fewer in a row than a crawler bears: the host is not closed."""
PRICE: Headers = (("crawler-price", "USD 0.01"), ("crawler-error", "MissingCrawlerPrice"))


def walls(place: PagePlace) -> dict[str, Made]:
    """Return the pages: each wall, and two pages that are none."""
    found = {
        WALLS + name: Made((_answer(status, headers, markup),), outcome="challenged")
        for name, status, headers, markup in CHALLENGES
    }
    found[f"{WALLS}price"] = Made((_answer(402, PRICE, "<title>Payment required</title>"),))
    found[f"{WALLS}legal"] = Made((_answer(451, (), "<title>Unavailable for legal reasons</title>"),))
    found[f"{WALLS}consent"] = _consent(place)
    about = "How a page with <code>window._cf_chl_opt</code> is recognized"
    found[f"{WALLS}about"] = Sheet(place, f"{WALLS}about", "Walls").tag(about).anchor(f"{WALLS}read.html").made()
    index = Sheet(place, WALLS, "Walls and what is none")
    for path in found:
        index.anchor(path)
    proofs = {path: leaf(place, path) for path in (f"{WALLS}agreed.html", f"{WALLS}read.html")}
    return found | proofs | {WALLS: index.made()}


def _answer(status: int, headers: Headers, markup: str) -> ServedAnswer:
    body = f"<!DOCTYPE html>{markup}<a href={WALLS}bait.html>bait</a>\n"
    return ServedAnswer(status, (*HTML, *headers), body.encode())


def _consent(place: PagePlace) -> Made:
    """Return a page that asks for consent: it is marked, and a page otherwise."""
    form = '<form action="https://consent.google.com/save" method="post"><button>Accept</button></form>'
    made = Sheet(place, f"{WALLS}consent").tag(form).anchor(f"{WALLS}agreed.html")
    head, _, rest = made.html().partition("<title>")
    body = f"{head}<title>Before you continue to Google</title>{rest.partition('</title>')[2]}"
    return Made((ServedAnswer(200, HTML, body.encode()),), made.marks)
