"""Formulas: MathML as one line of text that says the same: `1/2`, `x^2`, `a_(i+1)`, `√(a+b)` (MathML Core, section 3).

Without the marks, a fraction or a power would be another number.
"""

import re

DEPTH_MAX = 60
"""Depth of a formula; deeper elements have no marks."""
_ANNOTATION = re.compile(r"<annotation.*?(?:</annotation[^>]*+>?|\Z)", re.DOTALL | re.IGNORECASE)
_PIECE = re.compile(r"<(/?)([^\t\n\f\r <>/]*+)[^<>]*+>|([^<]++)|<")
_ONE = re.compile(r"\d+|&#?\w+;|\([^()]*\)|.", re.DOTALL)
"""A number, a character, a reference to one, or a group."""
_JOINED = {"mfrac": "/", "msup": "^", "msub": "_", "munder": "_"}
_BOTH = frozenset(("msubsup", "munderover"))


def linear_formula(content: str) -> str:
    """Return the text of a formula, without its annotations; references stay. Linear except for nesting."""
    held: list[list[str]] = [[]]
    names = [""]
    for end, name, text in _PIECE.findall(_ANNOTATION.sub("", content)):
        name = name.lower().rpartition(":")[2]
        if text:
            held[-1].append(text if text.strip() else "")
        elif not end and name and len(names) < DEPTH_MAX:
            held.append([])
            names.append(name)
        elif name in names:
            while len(names) > 1:
                last = names.pop()
                parts = held.pop()
                held[-1].append(_joined(last, parts))
                if last == name:
                    break
    return "".join(map("".join, held))


def _joined(name: str, parts: list[str]) -> str:
    texts = [one.strip() for one in parts if one.strip()]
    if name in _JOINED and len(texts) == 2:
        first = _grouped(texts[0]) if name == "mfrac" else texts[0]
        return f"{first}{_JOINED[name]}{_grouped(texts[1])}"
    if name in _BOTH and len(texts) == 3:
        return f"{texts[0]}_{_grouped(texts[1])}^{_grouped(texts[2])}"
    if name == "mroot" and len(texts) == 2:
        return f"{_grouped(texts[0])}^(1/{_grouped(texts[1])})"
    if name == "mtable":
        return "; ".join(texts)
    if name == "mfenced":
        return f"({', '.join(texts)})"
    whole = "".join(parts)
    if name == "msqrt":
        return f"√{_grouped(whole.strip())}"
    return f"{whole} " if name == "mtd" else whole


def _grouped(text: str) -> str:
    """Return a part with brackets around it, unless it is one number, letter or group."""
    return text if _ONE.fullmatch(text) is not None else f"({text})"
