"""Near: an article, copies of it with a word or a number changed, and others that only share its frame."""

from __future__ import annotations

from gossamer.lab.simweb.answers import Made
from gossamer.lab.simweb.sheet import Place, Sheet

AT = "/near/"
COPIES = ("print.html", "dated.html", "edited.html")
OTHERS = ("other-1.html", "other-2.html", "other-3.html")


def pages(place: Place) -> dict[str, Made]:
    """Return the corner."""
    article = place.some(60, "article")
    words = article.split()
    edited = " ".join([*words[:200], "corrected", *words[201:]])
    index = Sheet(place, AT, "Near copies").anchor(f"{AT}article.html")
    found = {f"{AT}article.html": _page(place, "article.html", article)}
    for name, text in zip(COPIES, (article, f"Seen 1234 times on 2024-05-06. {article}", edited), strict=True):
        found[AT + name] = _page(place, name, text)
    for name in OTHERS:
        found[AT + name] = _page(place, name, place.some(60, name))
    for path in list(found)[1:]:
        index.anchor(path)
    return found | {AT: index.made()}


def _page(place: Place, name: str, text: str) -> Made:
    # The title differs, so that no two are equal byte for byte.
    return Sheet(place, AT + name, f"Article {len(name)}", about="near").tag(f"<p>{text}</p><!-- {name} -->").made()
