from __future__ import annotations

from pathlib import Path

from gossamer.lab.simweb.behaviors.declared import BEHAVIORS

PAGE = Path(__file__).parents[2] / "docs/reference/simweb.md"


def test_the_page_names_every_behaviour_as_it_is() -> None:
    text = PAGE.read_text()
    for each in BEHAVIORS:
        assert f"| `{each.name}` | {each.kind} | {each.share:g} | {each.what} | {each.right} |" in text
