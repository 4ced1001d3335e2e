"""The history of a robots.txt, from what a crawl archived."""

from __future__ import annotations

import json
from itertools import chain, repeat
from pathlib import Path

import pytest

from tests.commands import run
from tests.ring.crawls import OWN, crawl
from tests.ring.hostile import Answer, HostileServer, whole

OLD, NEW = b"User-agent: *\nDisallow: /a\n", b"User-agent: *\nDisallow: /a\nDisallow: /b\n"


@pytest.mark.promise("Files and exports", "The history of a host's robots.txt is derived from the archive.")
def test_what_changed_in_a_robots_txt_and_when(tmp_path: Path) -> None:
    versions = chain((OLD, OLD), repeat(NEW))
    pages = {f"/{n}": whole(f'<a href="/{n + 1}">next</a>'.encode()) for n in range(4)}
    robots = Answer(lambda: (next(versions),), f"text/plain; note={'x' * 40_000}")
    with HostileServer({"/robots.txt": robots, **pages}) as server:
        # Each copy is good for the next page and for no other.
        sets = ("robots.ttl_s=1.0", "robots.ttl_s_min=1.0", "politeness.delay_s_min=0.6", "politeness.per_host=1")
        crawl((f"{server.root}0",), tmp_path / "crawl", *OWN, *sets)
        assert server.counts["/robots.txt"] >= 4
    status, out, _ = run("robots", str(tmp_path / "crawl"), "127.0.0.1", "--json")
    assert status == 0
    told = [json.loads(line) for line in out.splitlines()]
    assert len(told) == server.counts["/robots.txt"]
    assert [one["at"] for one in told] == sorted(one["at"] for one in told)
    assert [one["change"] for one in told[:4]] == ["first", "same", "changed", "same"]
    assert told[2]["diff"] == ["+Disallow: /b"]
    assert {one["status"] for one in told} == {200}
    text = run("robots", str(tmp_path / "crawl"), "127.0.0.1")[1]
    assert text.count("+Disallow: /b") == 1
    refused = run("robots", str(tmp_path / "crawl"), "127.0.0.2")
    assert refused[0] == 2
    assert "has no robots.txt of 127.0.0.2" in refused[2]
