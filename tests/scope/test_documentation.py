"""docs/rules.md names every rule and filter there is."""

from __future__ import annotations

from pathlib import Path

from gossamer.scope.chain import Lists, scope_chain
from gossamer.scope.options import ScopeOptions
from gossamer.scope.roots import Roots
from gossamer.scope.whitelist import Whitelist
from gossamer.url.rules import DEFAULT_RULES, RULES

TEXT = (Path(__file__).parents[2] / "docs" / "rules.md").read_text()


def test_every_rule_has_its_row() -> None:
    on, off = TEXT.split("### Off unless named")
    for rule in RULES:
        assert f"\n| `{rule}` | " in (on if rule in DEFAULT_RULES else off)


def test_every_filter_has_its_row_in_their_order() -> None:
    options = ScopeOptions(exclude=("x",), include=("x",), depth_max=1, media_types=("text/html",))
    lists = Lists(whitelist=Whitelist(["example.org"]))
    rows = TEXT.split("## Filters")[1]
    places = [rows.index(f"\n| `{one.name}` | ") for one in scope_chain(options, Roots("host"), lists=lists).filters]
    assert places == sorted(places)


def test_every_option_is_told() -> None:
    for option in ScopeOptions.model_fields:
        assert f"`{option}" in TEXT or f"`[scope] {option}`" in TEXT
