"""Where Protego, the usual parser, gives another answer than we do: all of it is in docs/reference/robots.md."""

from __future__ import annotations

from pathlib import Path

from protego import Protego

from tests.stages.robots.test_rfc9309 import GOOGLE, RULES
from tests.stages.robots.test_rules import GROUPS, PATHS, H

TEXT = (Path(__file__).parents[3] / "docs/reference/robots.md").read_text(encoding="utf-8")


def shown(text: str) -> str:
    """Return a file as the page shows it."""
    return text.encode("unicode_escape").decode().replace("\\n", " ↵ ").strip().rstrip("↵").strip()


def test_every_difference_is_reported() -> None:
    cases = [(text if isinstance(text, str) else "UTF-16, marks, NUL", text, "/x/y", ok) for text, ok in GROUPS]
    cases += [("User-agent: *\n" + text, "User-agent: *\n" + text, path, ok) for text, path, ok in PATHS]
    cases += [(text, text, path, True) for _, text, path, _ in RULES]
    cases += [(text, text, path, False) for _, text, _, path in RULES if path is not None]
    cases += [(text, text, path, ok) for _, text, path, ok in GOOGLE]
    assert len(cases) == 277
    untold, differing = [], 0
    for name, text, path, allowed in cases:
        content = text if isinstance(text, str) else text.decode("utf-8", "replace")
        if Protego.parse(content).can_fetch(H + path, "gossamer") is not allowed:
            differing += 1
            # Those with a byte order mark in front stand for all that have one.
            row = "\ufeffUser-agent: *\nDisallow: /" if name[:1] == "\ufeff" else name
            if f"| `{shown(row)}` |" not in TEXT:
                untold.append((shown(row), path))
    assert untold == []
    assert differing, "a comparison that finds nothing compares nothing"
