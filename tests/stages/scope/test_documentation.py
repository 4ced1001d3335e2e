"""docs/reference/scope.md names every rule and filter there is."""

from __future__ import annotations

import re
from pathlib import Path

from gossamer.config import configure
from gossamer.config.lists import check_lists, scope_lists
from gossamer.options import keys_of
from gossamer.stages.scope.chain import scope_chain
from gossamer.stages.scope.filters import FILTERS, judges_again
from gossamer.stages.scope.options import USELESS, ScopeOptions
from gossamer.stages.scope.roots import Roots
from gossamer.url.rules import DEFAULT_RULES, RULES

TEXT = (Path(__file__).parents[3] / "docs/reference/scope.md").read_text()


def test_every_rule_has_its_row() -> None:
    on, off = TEXT.split("### Rules that are off by default")
    for rule in RULES:
        assert f"\n| `{rule}` | " in (on if rule in DEFAULT_RULES else off)


def test_every_filter_has_its_row_in_their_order() -> None:
    rows = TEXT.split("## Filters")[1]
    places = [rows.index(f"\n| `{one.name}` | ") for one in FILTERS]
    assert places == sorted(places)


def test_the_filters_that_judge_again_are_named() -> None:
    names = [one.name for one in FILTERS if one.by_place and judges_again(one)]
    shown = ", ".join(f"`{name}`" for name in names[:-1]) + f" and `{names[-1]}`"
    assert f"the filters that check the address itself, and {shown}, also apply to URLs that are already queued" in TEXT


def test_every_kind_of_useless_path_has_its_row() -> None:
    for kind in USELESS:
        assert f"\n| `{kind}`" in TEXT


def test_the_configurations_shown_are_right(tmp_path: Path) -> None:
    for name in ("excluded.txt", "wanted.txt", "unwanted.txt"):
        (tmp_path / name).write_text("# nothing yet\n")
    (tmp_path / "million.txt").write_text("example.org\n")
    shown = re.findall(r"^```toml\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    assert len(shown) >= 5
    for text in shown:
        (tmp_path / "crawl.toml").write_text(text)
        config = configure(tmp_path / "crawl.toml")
        check_lists(config)
        config.url.canonicalizer()
        scope_chain(config.scope, Roots(config.scope.scope), lists=scope_lists(config))


def test_every_option_is_reported() -> None:
    for option in keys_of(ScopeOptions):
        assert f"`{option}" in TEXT or f"`[scope] {option}`" in TEXT
