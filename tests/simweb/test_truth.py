from __future__ import annotations

import pytest
from msgspec.structs import replace

from gossamer.lab.simweb.behaviors import BEHAVIORS, TRAPS
from gossamer.lab.simweb.behaviors.bodies import EMBEDDED_FILES
from gossamer.lab.simweb.behaviors.traps import GOOD_PAGES, KINDS
from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.process import SimwebProcess
from gossamer.lab.simweb.truth import Truth
from gossamer.lab.simweb.web import Web

from .walker import Walker

TINY = SimwebOptions(seed=3, hosts=12, pages=120, port=8480, bytes_median=1_000, links_per_page=15)


@pytest.mark.heavy
def test_truth_is_what_an_independent_walker_finds(fresh: SimwebProcess) -> None:
    web = fresh.web
    shown = {name for host in web.hosts for name in (host.robots, *host.behaviors)}
    assert shown >= {each.name for each in BEHAVIORS if each.kind in ("robots", "pages")} - TRAPS
    assert any(host.slow for host in web.hosts)
    assert any(host.compressed for host in web.hosts)
    assert any(host.mirror_of >= 0 for host in web.hosts)
    truth = Truth(web).walk(web.seeds, links=True)
    walker = Walker(web.names)
    walker.walk(web.seeds)
    assert truth.differences(walker.outcomes, web) == []
    assert truth.links - walker.links == set()
    assert walker.links - truth.links - truth.links_optional == set()
    assert {expected.outcome for expected in truth.pages.values()} == {
        "fetched", "redirected", "http_error", "robots_denied", "robots_unreachable", "connect_error", "dns_error",
        "timeout", "protocol_error", "legally_blocked",
    }  # fmt: skip


def test_differences_name_each_kind() -> None:
    web = Web(TINY)
    truth = Truth(web).walk(web.seeds)
    right = {url: expected.outcome for url, expected in truth.pages.items()}
    assert truth.differences(right, web) == []
    seed = web.seeds[0]
    assert truth.differences({**right, seed: "timeout"}, web) == [f"wrong: {seed} is timeout, should be fetched"]
    assert truth.differences({**right, seed + "x": "fetched"}, web) == [f"unexpected: {seed}x is fetched"]
    del right[seed]
    assert truth.differences(right, web) == [f"missing: {seed} should be fetched"]


@pytest.mark.parametrize("scope", ["host", "domain", "any"])
def test_scope_bounds_the_hosts(scope: str) -> None:
    web = Web(TINY)
    names = {url.split("/")[2].partition(":")[0] for url in Truth(web).walk(web.seeds, scope).pages}
    sites = {host.site for host in web.hosts if host.name in names}
    match scope:
        case "host":
            assert names == {web.hosts[0].name}
        case "domain":
            assert sites == {web.hosts[0].site}
            assert len(names) == TINY.hosts_per_site
        case _:
            assert len(sites) == 4


def test_prefix_scope_and_depth_bound_the_pages() -> None:
    web = Web(TINY)
    seed = web.url(web.hosts[0], 1)
    found = Truth(web).walk((seed,), "prefix").pages
    assert found
    assert all(url.startswith(seed[: seed.rindex("/") + 1]) for url in found)
    near = Truth(web).walk(web.seeds, depth_max=1).pages
    assert max(expected.depth for expected in near.values()) == 1
    assert len(near) < len(Truth(web).walk(web.seeds).pages)


def test_hops_bound_a_chain_of_redirects() -> None:
    web = Web(TINY)
    host = next(host for host in web.hosts if "redirects" in host.behaviors and host.robots.startswith("robots_4"))
    chain = [web.front(host) + f"redirects/long-{k}" for k in range(1, 9)]
    walked = Truth(web).walk(chain[:1], hops_max=5)
    assert set(chain) & set(walked.pages) == set(chain[:6])
    assert chain[6] in walked.optional


def test_every_page_of_a_plain_web_is_reached_and_fetched() -> None:
    web = Web(SimwebOptions.plain(hosts=30, pages=600, port=8480))
    found = Truth(web).walk(web.seeds).pages
    ordinary = {web.url(host, number) for host in web.hosts for number in range(host.pages)}
    assert ordinary <= set(found)
    assert {expected.outcome for expected in found.values()} == {"fetched"}


def test_traps_are_in_no_truth() -> None:
    web = Web(replace(TINY, traps=True))
    shown = {name for host in web.hosts for name in host.behaviors}
    assert set(KINDS) <= shown
    pages = Truth(web).walk(web.seeds).pages
    assert not any(web.is_trap(url) for url in pages)
    good = [url for url in pages if "/good/" in url]
    assert len(good) >= GOOD_PAGES


def path(url: str) -> str:
    return "/" + url[7:].partition("/")[2]


def test_walls_end_as_what_they_are() -> None:
    web = Web(SimwebOptions(hosts=3, pages=9, port=8480, behaviours=("walls",), shares={"walls": 1.0}))
    walls = f"{web.fronts[1]}walls/"
    pages = Truth(web).walk([walls], scope="prefix").pages
    assert {url.removeprefix(walls): expected.outcome for url, expected in pages.items()} == {
        "": "fetched", "header": "challenged", "markup": "challenged", "page": "challenged", "busy": "challenged",
        "price": "payment_required", "legal": "legally_blocked", "consent": "fetched", "agreed.html": "fetched",
        "about": "fetched", "read.html": "fetched",
    }  # fmt: skip


def test_embeds_are_walked_when_they_are_asked_for() -> None:
    web = Web(SimwebOptions(hosts=3, pages=3, behaviours=("embeds",), port=8480))
    without, with_them = (Truth(web).walk(web.seeds, embeds=embeds).pages for embeds in (False, True))
    more = {url.rpartition("/")[2] for url in with_them.keys() - without.keys()}
    assert more == {*EMBEDDED_FILES, "main.css"}
    assert all(
        with_them[url].depth == min(p.depth for u, p in with_them.items() if u.endswith("/embeds/"))
        for url in with_them
        if url.endswith(".gif")
    )


def test_agents_are_read_by_their_own_group() -> None:
    web = Web(SimwebOptions(hosts=60, pages=60, port=8480))
    host = next(host for host in web.hosts if host.robots == "robots_named")
    assert Truth(web).may_fetch(host, "/")
    assert not Truth(web, "other").may_fetch(host, "/")
    assert not Truth(web).may_fetch(host, "/private/")
