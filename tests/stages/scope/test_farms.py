"""Farms without a crawl: which hosts and links are evidence, when that suffices, and what stays in memory."""

from __future__ import annotations

import pytest

from gossamer.model.links import Link
from gossamer.model.pages import Sketch
from gossamer.ports import KNOWN, NEW
from gossamer.stages.scope import farms as farms_module
from gossamer.stages.scope.farms import CLOSE_FROM_HOSTS, HOSTS_FIRST, NAMING_PAGES_MAX, Farm, Farms
from gossamer.stages.scope.options import ScopeOptions
from gossamer.stages.scope.traps import Traps
from gossamer.url.url import fingerprint

from .links import linked, named

SAME = Sketch(0, 0, 60, tuple(range(60)))
"""What each host says."""


def watch(farms: Farms, site: str = "farm.example", hosts: int = CLOSE_FROM_HOSTS) -> Farm:
    """Fetch a page of each of `hosts` hosts of a site, after its first; return the site as it is watched."""
    found = [farms.note_page(named(f"http://h{number}.{site}/"), lambda: SAME) for number in range(HOSTS_FIRST + hosts)]
    farm = found[-1]
    assert farm is not None
    return farm


def unkept() -> Farms:
    return Farms(lambda _partition, _name: None)


def link_to(*hosts: str) -> list[Link]:
    return [linked(f"http://{host}/") for host in hosts]


def test_links_to_new_hosts_of_the_site_are_evidence_and_those_to_itself_or_elsewhere_are_not() -> None:
    farms = unkept()
    farm = watch(farms)
    own = "h99.farm.example"
    links = link_to(own, "new.farm.example", "known.farm.example", "other.example")
    farms.note_links(links, [NEW, NEW, KNOWN, NEW], f"http://{own}/")
    assert (farm.inside, farm.outside, farm.naming) == (1, 0, 1)
    assert farm.node.fresh_links == pytest.approx(1 / 2 / farms_module.FRESH_MEMORY_PAGES)


def test_a_page_that_links_to_no_other_host_of_its_site_says_nothing() -> None:
    farms = unkept()
    farm = watch(farms)
    farms.note_links(link_to("h99.farm.example", "other.example"), [NEW, NEW], "http://h99.farm.example/")
    assert (farm.inside, farm.naming, farm.node.fresh_links) == (0, 0, 0.0)


def test_links_from_another_farm_count_as_its_own_and_those_from_other_sites_speak_for_it() -> None:
    farms = unkept()
    farm = watch(farms)
    watch(farms, "barn.example")
    farms.note_links(link_to("new.farm.example"), [NEW], "http://h99.barn.example/")
    assert (farm.inside, farm.outside) == (1, 0)
    farms.note_links(link_to("newer.farm.example", "known.farm.example"), [NEW, KNOWN], "http://other.example/")
    assert (farm.inside, farm.outside) == (1, 1)


def test_a_host_is_heard_for_some_pages_and_the_first_hosts_of_a_site_are_not() -> None:
    farm = Farm(0, ("www.farm.example",))
    assert not farm.is_witness(fingerprint("www.farm.example"))
    heard = [farm.is_witness(fingerprint("h.farm.example")) for _ in range(NAMING_PAGES_MAX + 2)]
    assert heard == [True] * NAMING_PAGES_MAX + [False] * 2


def test_what_did_not_change_is_not_written_again() -> None:
    farms = unkept()
    watch(farms)
    assert [name for _, name, _ in farms.take_dirty()] == ["*.farm.example"]
    assert farms.take_dirty() == []


def test_sites_that_leave_the_memory_are_watched_again_where_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(farms_module, "FARMS_MAX", 2)
    farms = unkept()
    for number in range(4):
        assert watch(farms, f"farm{number}.example", 20).node.pages == 20
    again = farms.note_page(named("http://more.farm0.example/"), lambda: SAME)
    assert again is not None
    assert again.node.pages == 21
    assert len(farms._farms) == 2
    assert {name for _, name, _ in farms.take_dirty()} == {f"*.farm{number}.example" for number in range(4)}


def test_hosts_that_say_the_same_are_cut_off_when_there_are_enough_of_them() -> None:
    traps = Traps(ScopeOptions())
    trap = None
    for number in range(HOSTS_FIRST + 400):
        url = named(f"http://h{number}.farm.example/")
        trap = traps.note_page(url, lambda: SAME, 2026)
        if trap is not None:
            break
        traps.note_links(link_to(f"new{number}.farm.example", f"newer{number}.farm.example"), [NEW, NEW], url.text)
    assert trap is not None
    assert trap.pages == ScopeOptions().trap_pages_min
    assert traps.trap_of(named("http://any.farm.example/")) is trap
    assert traps.trap_of(named("http://h0.farm.example/")) is None, "one of the first hosts"

    traps.forget([], ["farm.example"])
    assert traps.trap_of(named("http://any.farm.example/")) is None, "another shard has it"
