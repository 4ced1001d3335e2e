"""Nofollow: links and pages that ask not to be followed, in every way there is to ask."""

from __future__ import annotations

from gossamer.lab.simweb.answers import Headers, Made, Mark
from gossamer.lab.simweb.sheet import Place, Sheet, leaf

AT = "/nofollow/"


def pages(place: Place) -> dict[str, Made]:
    """Return the corner: `hidden-…` is reached by disobedience only, `open-…` must be reached."""
    agent = place.options.agent
    metas = {
        "meta": '<meta name="robots" content="nofollow">',
        "meta-none": '<META NAME="ROBOTS" CONTENT="NONE">',
        "meta-list": '<meta content="noarchive, NoFollow" name="robots">',
    }
    headers: dict[str, Headers] = {
        "header": (("X-Robots-Tag", "nofollow"),),
        "header-list": (("X-Robots-Tag", "noarchive, nofollow"),),
        "header-agent": (("X-Robots-Tag", f"{agent}: nofollow"),),
    }
    found = {AT + name: _page(place, name, head=html) for name, html in metas.items()}
    found |= {AT + name: _page(place, name, headers=lines) for name, lines in headers.items()}
    found[f"{AT}noindex"] = _page(place, "noindex", head='<meta name="robots" content="noindex">', nofollow=False)
    other: Headers = (("X-Robots-Tag", "otherbot: nofollow"),)
    found[f"{AT}header-other"] = _page(place, "header-other", headers=other, nofollow=False)
    index = Sheet(place, AT, "Nofollow")
    for path in found:
        index.anchor(path)
    index.anchor(f"{AT}hidden-rel.html", nofollow=True)
    listed = Mark(f"{place.origin}{AT}hidden-rel-list.html", nofollow=True)
    index.tag(f'<p><a rel="external NOFOLLOW ugc" href="{AT}hidden-rel-list.html">paid</a></p>\n', listed)
    hidden = ("rel", "rel-list", *metas, *headers)
    found |= {f"{AT}hidden-{name}.html": leaf(place, f"{AT}hidden-{name}.html") for name in hidden}
    found |= {f"{AT}open-{name}.html": leaf(place, f"{AT}open-{name}.html") for name in ("noindex", "header-other")}
    found[AT] = index.made()
    return found


def _page(place: Place, name: str, *, head: str = "", headers: Headers = (), nofollow: bool = True) -> Made:
    target = f"{AT}{'hidden' if nofollow else 'open'}-{name}.html"
    sheet = Sheet(place, AT + name).head(head)
    made = sheet.anchor(target).made(headers=headers)
    # The page's directive reaches each of its links.
    return Made(made.answers, tuple(Mark(mark.url, nofollow=nofollow) for mark in made.marks))
