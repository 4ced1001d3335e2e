"""Rendering in crawls of several shards: a resource is requested by the shard that keeps its host's delay."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Callable
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import pytest

from gossamer.api.following import CommittedPages
from gossamer.assembly.building import assemble
from gossamer.assembly.home import homes
from gossamer.cluster.partitions import PartitionMap
from gossamer.config import Config, configure
from gossamer.url.name import Namer
from tests.acceptance.noting import Site
from tests.acceptance.test_protocols import rows as all_rows
from tests.acceptance.test_render import browsers, records
from tests.cluster.crawls import WORKERS
from tests.faults.shards import Shards
from tests.ring.crawls import OWN

pytestmark = [pytest.mark.acceptance, pytest.mark.paced, pytest.mark.timeout(300), pytest.mark.long]
DELAY_S = 0.7
ADD = "document.body.insertAdjacentHTML('beforeend', '<a href=%s>x</a>');"


def names(shards: int) -> list[str]:
    """Return the name of a host for each shard."""
    found: dict[int, str] = {}
    for number in range(100):
        url = Namer().name(f"http://site{number}.test/")
        assert url is not None
        found.setdefault(PartitionMap.even(shards).owner(url.partition), url.host)
    return [found[shard] for shard in range(shards)]


def config_of(folder: Path, seeds: list[str], hosts: dict[str, str], *sets: str) -> Config:
    file = folder / "hosts"
    file.write_text("".join(f"{address} {name}\n" for name, address in hosts.items()))
    return configure(
        options={"allow_private": True, "hosts": str(file), "output": str(folder / "c"), "scope": "host"},
        sets=(
            *OWN, *WORKERS, "cluster.workers=2", "crawl.render=always", "fetch.request_s_max=20.0",
            f"politeness.delay_s_min={DELAY_S}", *sets,
        ),
        seeds=seeds,
    )  # fmt: skip


def crawl(config: Config, folder: Path) -> int:
    """Crawl with two shards; return the most guards of browsers at once."""
    guards = [0]

    def look(_: Shards) -> None:
        # Each names its own folder. One that starts its browser is two processes with one command for a moment.
        guards.append(len({command for command in browsers() if "guard.py" in command}))

    running = Shards(config, folder / "c", 2, assemble)
    running.round_s = 0.05
    assert asyncio.run(running.run(look)) == "finished"
    return max(guards)


@pytest.mark.promise(
    "Several shards", "A resource of a rendered page is requested by the shard that keeps its host's delay."
)
def test_a_resource_of_another_shards_host_keeps_the_delay_and_the_rules_of_its_host(
    tmp_path: Path, site: Callable[..., Site], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", os.environ["TMPDIR"])  # The shards run in this process.
    first, second = names(2)
    robots = "User-agent: *\nDisallow: /denied"
    pages = {"/own.html": "<p>own", "/far.js": ADD % "/found", "/found": "<p>found", "/denied.js": ADD % "/denied"}
    here = site({**pages}, robots, "127.0.0.2")
    there = site({**pages}, robots, "127.0.0.3")
    urls = [one.url.replace(one.url[7:16], name) for one, name in ((here, first), (there, second))]
    for server, other in ((here, urls[1]), (there, urls[0])):
        server.pages["/"] = (
            f"<body><a href=/own.html>x</a><script src={other}/far.js></script><script src={other}/denied.js></script>"
            f"<script>fetch('{other}/far.js').catch(() => 0)</script>"
        )
    hosts = {first: "127.0.0.2", second: "127.0.0.3"}
    config = config_of(tmp_path, [f"{url}/" for url in urls], hosts, "render.browsers=1")
    assert crawl(config, tmp_path) == 1, "the shards on one machine share the browsers"
    found = [(row["url"], row["outcome"], row["rendered"]) for row in all_rows(tmp_path / "c")]
    assert sorted(found) == sorted((f"{url}{path}", "fetched", "rendered") for url in urls for path in PATHS)
    for server in (here, there):
        # Data of another origin is requested with that origin, since a reply to no origin permits none.
        assert sorted(server.paths) == ["/", "/far.js", "/far.js", "/found", "/own.html", "/robots.txt"]
        origins = {headers.get("origin", "") for _, _, path, headers in server.log if path == "/far.js"}
        assert origins == {"", next(url for url in urls if not url.endswith(server.url[-6:]))}
        assert min(b - a for a, b in pairwise([at for at, *_ in server.log])) >= DELAY_S - 0.05
    archived = {fields["WARC-Target-URI"]: fields for kind, fields, _ in records(tmp_path / "c") if kind == "response"}
    for url, page in (urls, urls[::-1]):
        assert archived[f"{url}/far.js"]["WARC-Page-ID"] == archived[f"{page}/"]["WARC-Page-ID"]
    with closing(CommittedPages(config, homes(tmp_path / "c", 2))) as committed:
        read = {one.url.text: one.content.body for one in committed.next() if one.content is not None}
    assert [read[f"{url}/"].count(b'<a href="/found">x</a>') for url in urls] == [1, 1]
    assert browsers() == []


PATHS = ("/", "/own.html", "/found")
