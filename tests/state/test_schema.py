"""The schema: each durable key that is no URL's and no host's is declared once, as a real store holds it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec
import pytest

import gossamer
from gossamer import Crawler
from gossamer.assembly.scaling import ADD
from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.process import SimwebProcess
from gossamer.state.schema import (
    FAMILIES,
    HOSTS_STORE,
    KEYS,
    META_PARTITION,
    PARTITIONED,
    SHARED_FAMILIES,
    DurableKey,
    Sharing,
    under,
    with_sharing,
)
from gossamer.state.store import Store
from tests.cluster.crawls import begun, config_of

SOURCE = Path(gossamer.__file__).parent
ALWAYS = {
    "committed", "applied", "url_rules", "offline", "seen_form", "components.frontier", "filters", "seeded",
    "rejected", "manifest", "tally", "frontier",
}  # fmt: skip
"""Keys that each crawl has."""


def kind_of(written: str) -> Any:
    """Return the type that a declaration names."""
    names: dict[str, Any] = {}

    def imported(match: re.Match[str]) -> str:
        names[match[2]] = getattr(import_module(match[1]), match[2])
        return match[2]

    return eval(re.sub(r"(gossamer(?:\.\w+)*)\.(\w+)", imported, written), names)


def name_of(key: DurableKey) -> str:
    return key.key.removeprefix(META_PARTITION).decode()


@pytest.mark.parametrize("key", KEYS, ids=lambda key: f"{key.family}-{name_of(key)}")
def test_a_declaration_names_a_family_an_owner_and_a_type(key: DurableKey) -> None:
    assert key.family in (*FAMILIES, HOSTS_STORE)
    assert key.key.startswith(META_PARTITION)
    assert import_module(key.owner)
    assert kind_of(key.value)
    assert key.version >= 1


def test_declarations_do_not_overlap() -> None:
    for one in KEYS:
        begin, end = one.range
        inside = [other for other in KEYS if other.family == one.family and begin <= other.key < end]
        assert inside == [one]


def test_parts_of_a_family_have_marks_that_differ() -> None:
    marks = [(part.family, mark) for part in SHARED_FAMILIES for mark in part.marks]
    assert len(set(marks)) == len(marks)
    assert {part.family for part in SHARED_FAMILIES} <= set(FAMILIES)
    assert all(import_module(part.owner) for part in SHARED_FAMILIES)


def test_scaling_knows_what_to_do_with_what_shards_share() -> None:
    assert set(ADD) == {key.key for key in with_sharing(Sharing.ADDED)}
    assert {key.family for one in (Sharing.ADDED, Sharing.COPIED) for key in with_sharing(one)} == {"meta"}


def test_no_other_module_makes_a_key_of_the_shard() -> None:
    makes = re.compile(r"\bMETA_PARTITION\b|b\"\\xff\\xff")
    found = {path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py") if makes.search(path.read_text())}
    assert found - {"stages/process/images.py"} == {"state/schema.py"}, "declare the key in state/schema.py"


@pytest.mark.parametrize("prefix", [b"\xff\xffset:", META_PARTITION])
def test_what_is_under_a_prefix_is_all_that_begins_with_it(prefix: bytes) -> None:
    begin, end = under(prefix)
    assert begin <= prefix + b"\0" < end
    assert begin <= prefix + b"\xfe" * 12 < end
    assert not begin <= b"\xff\xfe" < end


@pytest.fixture(scope="module")
def simweb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimwebProcess]:
    options = SimwebOptions(seed=5, hosts=10, pages=200, links_per_page=10, bytes_median=2_000)
    with SimwebProcess(options, tmp_path_factory.mktemp("web")) as running:
        yield running


CRAWLS: dict[str, tuple[int, tuple[str, ...], set[str]]] = {
    "shards": (2, (), {"outbox", ""}),
    "budgets": (1, ("budget.host_pages=3", "budget.growth_max=4", "limits.max_pages=40"), {"budgets", "linking_max"}),
    "walk": (1, ("frontier.strategy='walk'", "walk.walkers=2", "walk.steps_max=60"), {"c", "w", "h"}),
    "continuous": (1, ("crawl.mode='continuous'", "limits.max_pages=50"), {"revisit"}),
}


@pytest.mark.parametrize("case", CRAWLS)
def test_a_store_holds_only_what_is_declared(case: str, simweb: SimwebProcess, tmp_path: Path) -> None:
    """Behind the partitions of a crawl's store each key is declared, and each value is of its declared type."""
    shards, sets, expected = CRAWLS[case]
    directory = tmp_path / "crawl"
    config = config_of(simweb, directory, shards, *sets)
    if shards > 1:
        begun(config, directory, shards, pages=50)
    else:
        asyncio.run(Crawler(output=directory, config=config).run())
    found: set[str] = set()
    for path in directory.glob("state/**/store"):
        found |= {name_of(key) for key in held(path)}
    assert found >= ALWAYS | expected


def held(path: Path) -> set[DurableKey]:
    store = Store(path, writable=False)
    used: set[DurableKey] = set()
    for family in FAMILIES:
        marks = b"".join(part.marks for part in SHARED_FAMILIES if part.family == family)
        assert all(not marks or key[2] in marks for key, _ in store.scan(family, *PARTITIONED))
        for name, value in store.scan(family, *under(META_PARTITION)):
            (key,) = (one for one in KEYS if one.family == family and one.range[0] <= name < one.range[1])
            if key.value != "bytes":
                msgspec.msgpack.decode(value, type=kind_of(key.value))
            used.add(key)
    store.close()
    return used
