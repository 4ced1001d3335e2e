"""Patterns that read bytes from outside cost one pass, and Python 3.11.2 matches them rightly."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

import gossamer
from tests.growth.patterns import faults, of_package


@cache
def found() -> dict[str, list[str]]:
    """Return what is wrong with the patterns of the package, by their places."""
    out: dict[str, list[str]] = {}
    for one in of_package(Path(gossamer.__file__).parent):
        out.setdefault(one.place, []).extend(faults(one.compiled, searched=one.searched))
    return out


OURS = ("gossamer.cli.", "gossamer.config.toml", "gossamer.lab.", "gossamer.world.")
"""What these read is the operator's, the system's or our own, and short."""
SOUND = {
    "gossamer.stages.archive.surt._PATH_SESSIONS": "reads an address, which has a bound",
    "gossamer.stages.archive.surt._QUERY_SESSIONS": "reads an address, which has a bound",
    "gossamer.config.seedfiles._HREF": "a quoted value without end ends with the next quote, and a tag with the next",
    "gossamer.stages.fetch.entire._END_TAG": "reads 1,024 bytes",
    "gossamer.stages.process.inline._SPECIAL": "what the last alternative gives back is its last character",
    "gossamer.stages.process.inline._FORMULA": "a formula holds no mark of another, and has a bound",
    "gossamer.stages.process.scan._ANCHOR": "a quoted value holds no bracket, and text ends before the next anchor",
    "gossamer.stages.process.expressions._FAR": "reads a selector of the operator",
}
"""Patterns of which the checker reports more than there is, or whose text has a bound, and why."""


def test_patterns_neither_go_back_nor_begin_anew() -> None:
    """One that fails here costs the square of its text, or finds wrong texts: CONTRIBUTING, Speed."""
    places = [place for place, some in found().items() if some and place not in SOUND and not place.startswith(OURS)]
    assert {place: found()[place] for place in places} == {}


def test_exemptions_are_needed_and_none_is_for_a_possessive_group() -> None:
    assert [place for place in SOUND if not found()[place]] == []
    assert [place for place, some in found().items() if any("possessive" in one for one in some)] == []


@pytest.mark.parametrize(
    ("pattern", "fault"),
    [
        ("(?:ab)*+c", "possessive"),
        ("(?:(a)|b)++", "possessive"),
        ("x(?>(?:a|(?:bc)*+))", "possessive"),
        ("[ /]*([^ />]+)=", "begin"),
        ("<!--.*?-->", "begin"),
        ("<a[^>]*>", "begin"),
        ("(?:b|[a-z]+)=", "begin"),
        ("x(?:a+|b)*y", "within"),
        ("x(?:[a-z]+,?)*;", "within"),
        ("x[0-9]+[0-9.]*;", "after the other"),
        (r'"@type"\s*:\s*\[?\s*"', "after the other"),
    ],
)
def test_the_checker_finds(pattern: str, fault: str) -> None:
    assert any(fault in one for one in faults(pattern, searched=True))


@pytest.mark.parametrize(
    "pattern", [r"//+", r"\s+", "x(?>(?:ab)*)c", "<[^<>]*>", "<[a-z]*+>", "(?s)<!--.*?(?:-->|\\Z)", "^[a-z]+="]
)
def test_the_checker_passes(pattern: str) -> None:
    assert faults(pattern, searched=True) == []
