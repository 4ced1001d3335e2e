from __future__ import annotations

import subprocess
import sys
from collections import Counter
from hashlib import sha256

import pytest
from msgspec.structs import replace

from gossamer.lab.simweb.behaviors.traps import ENTRIES
from gossamer.lab.simweb.hosts import populate
from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.web import Web
from gossamer.options import OptionsError, convert

OPTIONS = SimwebOptions(seed=5, hosts=30, pages=400, port=8480, oversized_bytes=1_000, bomb_bytes=1_000, traps=True)


def digest(web: Web) -> str:
    total = sha256()
    for host in web.hosts:
        paths = [web.url(host, number).partition(":8480")[2] for number in range(host.pages)]
        paths += ["/robots.txt", *(f"/{name}/" for name in host.behaviors), "/bodies/br", "/errors/500-once"]
        for path in paths:
            answer = web.page(host.name, path)
            total.update(f"{host}{path}{answer.status}{answer.headers}{answer.delay_s}".encode() + answer.body)
    return total.hexdigest()


@pytest.mark.heavy
def test_equal_options_give_equal_bytes_in_every_process() -> None:
    code = (
        "from gossamer.lab.simweb.options import SimwebOptions; from gossamer.lab.simweb.web import Web\n"
        f"from {__name__} import digest, OPTIONS; print(digest(Web(OPTIONS)))"
    )
    for hash_seed in ("1", "2"):
        run = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True,
            env={"PYTHONPATH": ":".join(sys.path), "PYTHONHASHSEED": hash_seed}, timeout=60, check=True,
        )  # fmt: skip
        assert run.stdout.strip() == digest(Web(OPTIONS))


def test_another_seed_gives_another_web() -> None:
    assert digest(Web(OPTIONS)) != digest(Web(replace(OPTIONS, seed=6)))


def test_answers_do_not_depend_on_the_order_of_questions() -> None:
    web, other = Web(OPTIONS), Web(OPTIONS)
    paths = [(host.name, path) for host in web.hosts for path in ("/", "/about/p1.html", "/redirects/", "/robots.txt")]
    forth = [web.page(*question) for question in paths]
    back = [other.page(*question) for question in reversed(paths)]
    assert forth == back[::-1]


def test_pages_of_hosts_fall_by_zipf_and_add_up() -> None:
    web = Web(SimwebOptions(hosts=200, pages=20_000, shares={"mirror": 0}))
    sizes = sorted((host.pages for host in web.hosts), reverse=True)
    assert sum(sizes) == pytest.approx(20_000, rel=0.01)
    assert sizes[0] / sizes[9] == pytest.approx(10**0.9, rel=0.05)


def test_sizes_and_link_counts_are_as_asked() -> None:
    options = SimwebOptions(hosts=20, pages=2_000, bytes_median=12_000, links_per_page=40, shares={"mirror": 0})
    web = Web(options)
    pages = [(host, number) for host in web.hosts for number in range(1, host.pages)]
    sizes = sorted(len(web.page(host.name, web.url(host, number).partition(":0")[2]).body) for host, number in pages)
    assert sizes[len(sizes) // 2] == pytest.approx(12_000, rel=0.1)
    marks = [web.describe(host, web.url(host, number).partition(":0")[2]).marks for host, number in pages]
    assert sum(map(len, marks)) / len(pages) == pytest.approx(40, rel=0.1)
    origin = {id(found): web.front(host) for (host, _), found in zip(pages, marks, strict=True)}
    near = sum(mark.url.startswith(origin[id(found)]) for found in marks for mark in found)
    assert near / sum(map(len, marks)) == pytest.approx(0.82, abs=0.05)


def test_at_least_five_names_share_an_address_and_sites_cross_addresses() -> None:
    hosts = populate(SimwebOptions(hosts=503))
    names = Counter(host.address for host in hosts)
    assert min(names.values()) >= 5
    assert len(names) == 100
    assert all(address.startswith("127.16.") for address in names)
    site = [host for host in hosts if host.site == "d003.example"]
    assert len(site) == 3
    assert len({host.address for host in site}) == 3


def test_mirrors_repeat_pages_byte_for_byte() -> None:
    web = Web(OPTIONS)
    mirror = next(host for host in web.hosts if host.mirror_of >= 0)
    original = web.hosts[mirror.mirror_of]
    assert web.page(mirror.name, "/").body == web.page(original.name, "/").body
    assert web.page(mirror.name, "/about/p1.html").body == web.page(original.name, "/about/p1.html").body


def test_ordinary_pages_differ_from_each_other() -> None:
    web = Web(SimwebOptions.plain(hosts=10, pages=500, links_per_page=0, bytes_median=200, port=8480))
    bodies = {
        web.page(host.name, web.url(host, number).partition(":8480")[2]).body
        for host in web.hosts
        for number in range(host.pages)
    }
    assert len(bodies) == sum(host.pages for host in web.hosts)


def test_slow_hosts_are_slow_and_others_are_not() -> None:
    web = Web(SimwebOptions(hosts=40, pages=400, slow_s_median=0.3))
    slow = [host for host in web.hosts if host.slow]
    assert slow
    for host in web.hosts:
        assert (web.page(host.name, "/").delay_s > 0) == host.slow
    assert web.page(slow[0].name, "/").delay_s != web.page(slow[0].name, "/robots.txt").delay_s


def test_behaviours_can_be_chosen() -> None:
    web = Web(SimwebOptions(hosts=20, pages=20, behaviours=("errors", "robots_part"), shares={"errors": 0.5}))
    assert {name for host in web.hosts for name in host.behaviors} == {"errors", "private", "directory"}
    assert sum("errors" in host.behaviors for host in web.hosts) == 10
    assert {host.robots for host in web.hosts} == {"robots_part", "robots_allow"}


def test_unknown_behaviours_are_refused_by_name() -> None:
    with pytest.raises(OptionsError, match="unknown behaviours"):
        convert(SimwebOptions, {"behaviours": ["nonsense"]})
    with pytest.raises(OptionsError, match="unknown behaviours"):
        convert(SimwebOptions, {"shares": {"nonsense": 1.0}})


FINITE = {"trap_listings": 6 * 9}
"""Six directories in nine orders: needless, not endless."""


@pytest.mark.heavy
def test_traps_have_no_end() -> None:
    web = Web(OPTIONS)
    for kind, (entry, *_) in ENTRIES.items():
        host = next(host for host in web.hosts if kind in host.behaviors)
        seen = {f"{web.front(host)}{kind}/x/{entry}"}
        asked: set[str] = set()
        for _ in range(40):
            for url in sorted(seen - asked)[:20]:
                asked.add(url)
                made = web.describe(host, url.partition(":8480")[2])
                assert made.answers[0].status == 200, url
                assert len(made.marks) >= 2
                seen |= {mark.url for mark in made.marks}
        assert len(seen) == FINITE[kind] if kind in FINITE else len(seen) > 300, kind
        assert all(web.is_trap(url) for url in seen)


def test_addresses_beside_a_trap_are_no_pages() -> None:
    web = Web(OPTIONS)
    for kind, path in (("trap_calendar", "2024/13/"), ("trap_near", "x.html"), ("trap_session_path", "1.html")):
        host = next(host for host in web.hosts if kind in host.behaviors)
        assert web.page(host.name, f"/{kind}/x/{path}").status == 404


def test_large_hosts_say_something_new_on_every_page() -> None:
    web = Web(SimwebOptions.plain(hosts=1, pages=400, port=8480))
    texts = [web.page(web.hosts[0].name, web.url(web.hosts[0], n).partition(":8480")[2]).body for n in range(400)]
    topics = [
        max(Counter(text.split()).items(), key=lambda word: (word[0][:1].isupper(), word[1]))[0] for text in texts
    ]
    assert len(set(topics)) > 390


def test_a_web_of_one_host_works() -> None:
    web = Web(SimwebOptions(hosts=1, pages=10))
    assert web.page(web.hosts[0].name, "/").status == 200


def test_options_refuse_addresses_beyond_loopback_and_odd_tokens() -> None:
    with pytest.raises(OptionsError, match="127"):
        convert(SimwebOptions, {"address_base": "10.0.0.0"})
    with pytest.raises(OptionsError, match="127"):
        convert(SimwebOptions, {"address_base": "127.255.255.250", "hosts": 1_000})
    with pytest.raises(OptionsError, match="token"):
        convert(SimwebOptions, {"agent": "two words"})


def test_presets_have_their_sizes_and_take_changes() -> None:
    large = SimwebOptions.preset("large", seed=9)
    assert (large.hosts, large.pages, large.seed) == (2_000, 500_000, 9)


def test_a_farm_has_hosts_without_end_at_one_address() -> None:
    web = Web(SimwebOptions(hosts=8, pages=40, behaviours=("farm",), port=8480))
    owner = next(host for host in web.hosts if "farm" in host.behaviors)
    (entry,) = (mark.url for mark in web.describe(owner, "/farm/").marks)
    seen, asked, bodies = {entry}, set[str](), set[bytes]()
    for _ in range(3):
        for url in sorted(seen - asked):
            asked.add(url)
            name, _, path = url.removeprefix("http://").partition(":8480")
            host = web.host(name)
            assert host is not None
            assert web.address(name) == host.address == owner.address
            bodies.add(web.page(name, path).body)
            seen |= {mark.url for mark in web.describe(host, path).marks}
    assert len({url.partition(":8480")[0] for url in seen}) > 100
    assert len(bodies) == len(asked), "no two pages are alike"
    assert all(web.is_trap(url) for url in seen)
    assert web.address("www.farm9999.test") is None
    assert web.page("www.farm9999.test", "/").status == 421
