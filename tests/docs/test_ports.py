"""The page about components describes each member of each port."""

from __future__ import annotations

import inspect
from typing import Protocol

import pytest

from gossamer import ports
from tests.docs.shown import ROOT
from tests.ports import PORTS, WHEN, members_of
from tests.tables import TABLES

PAGE = ROOT / "docs/how-to/components.md"


def test_every_port_is_on_the_page() -> None:
    declared = {
        name
        for name, one in vars(ports).items()
        if inspect.isclass(one) and one.__module__ == ports.__name__ and Protocol in one.__mro__
    }
    assert declared <= PORTS.keys()
    text = PAGE.read_text(encoding="utf-8")
    assert [name for name in PORTS if f"<!-- table: {name} -->" not in text] == []


@pytest.mark.parametrize("name", PORTS)
def test_every_member_says_when_it_is_used_and_what_it_must_hold(name: str) -> None:
    members = list(members_of(name))
    assert members
    assert [one.name for one in members if not one.when or not one.says] == []
    assert all("|" not in f"{one.types}{one.when}{one.says}" for one in members)


def test_nothing_is_described_that_no_port_has() -> None:
    assert WHEN.keys() == {f"{name}.{one.name}" for name in PORTS for one in members_of(name)}


def test_each_line_of_a_table_is_one_row() -> None:
    for name in (*PORTS, "types"):
        columns = 2 if name == "types" else 3
        assert {line.count(" | ") for line in "\n".join(TABLES[name]()).splitlines()} == {columns}
