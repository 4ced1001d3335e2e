"""Checks: what a crawl of a simulated world must not have broken, looked for in its files and in its requests."""

from __future__ import annotations

import gzip
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow.parquet as pq

from gossamer.features.revisit.state import decode_memory
from gossamer.stages.frontier.record import decode_entry
from gossamer.state.schema import PARTITIONED
from gossamer.state.store import Store
from tests.faults.world import BUSY_S, SKEW_S_MAX, SeenRequest, World

ROUNDING_S = 1e-6
IDLE_S_MAX = 1_000.0
"""Between two requests: the longest sleep of a host that fails, and the time in which no process was there."""
NO_PAGES = (401, 503)
"""Statuses of a host that needs a login, and of one that is busy: what they come with is requested again."""
SEED = "http://h0.test/"


def find_broken_promises(world: World) -> list[str]:
    """Return every promise that a crawl which has ended broke."""
    hosts = _early(world.log, lambda asked: asked.host, world.delay_s, world.at_once)
    shared = (
        _early(world.log, lambda asked: world.address(asked.host), world.address_delay_s) if world.shards > 1 else ()
    )
    # Retries of hosts that move are due by the clock of the shard that gave them.
    apart_s = 2 * SKEW_S_MAX if world.shards > 1 else 0.0
    return [
        *world.faulty,
        *hosts,
        *shared,
        *_hasty(world.log, world.forgot),
        *_find_stalls(world.log, IDLE_S_MAX + apart_s),
        *_find_disallowed(world),
        *_outcomes(world),
    ]


def _early(
    log: list[SeenRequest], whose: Callable[[SeenRequest], str], delay_s: float, at_once: int = 1
) -> Iterator[str]:
    """Yield the requests that came too soon after another of their host or address, whichever process sent it, or were
    too many at once.
    """
    ended: dict[str, SeenRequest] = {}
    running: dict[str, list[SeenRequest]] = {}
    for asked in sorted(log, key=lambda one: one.began):
        who = whose(asked)
        before = ended.get(who)
        out = running.get(who, [])
        for one in [one for one in out if one.ended < asked.began or at_once == 1]:
            out.remove(one)
            if before is None or one.ended > before.ended:
                before = ended[who] = one
        running[who] = [*out, asked]
        if before is not None and asked.began < before.ended + delay_s - ROUNDING_S:
            yield (
                f"{who}: {asked.host}{asked.path} was requested {asked.began - before.ended:.3f} s after "
                f"{before.host}{before.path} had ended, in life {asked.life}"
            )
        if len(out) >= at_once:
            yield f"{who}: {asked.host}{asked.path} was requested while {len(out)} requests were running"


def _hasty(log: list[SeenRequest], forgot: Sequence[float]) -> Iterator[str]:
    """Yield the requests that came too soon after their host had said that it is busy. After a power cut, and on
    another machine, a host waits its longest delay instead, which is that of a host which is not busy.
    """
    later: dict[tuple[int, int], float] = {}
    for asked in log:
        of = asked.machine, asked.life
        later[of] = max(later.get(of, 0.0), asked.began)
    busy: dict[str, SeenRequest] = {}
    for asked in sorted(log, key=lambda one: one.began):
        before = busy.get(asked.host)
        is_early = before is not None and before.ended <= asked.began < before.ended + BUSY_S - ROUNDING_S
        if before is not None and is_early and not any(before.ended <= at <= asked.began for at in forgot):
            after_s = asked.began - before.ended
            yield f"{asked.host}{asked.path} was requested {after_s:.3f} s after {before.path} was busy"
        # Else the process may have ended before it heard of that.
        if asked.is_busy and later[asked.machine, asked.life] > asked.ended:
            busy[asked.host] = asked


def _find_stalls(log: list[SeenRequest], idle_s_max: float) -> Iterator[str]:
    """Yield the requests before which the crawl was idle for longer than any delay."""
    ended = 0.0
    for asked in sorted(log, key=lambda one: one.began):
        if asked.began > ended + idle_s_max:
            yield f"{asked.host}{asked.path} was the first request for {asked.began - ended:.0f} s"
        ended = max(ended, asked.ended)


def _find_disallowed(world: World) -> Iterator[str]:
    for asked in world.log:
        if asked.path.startswith("/private/"):
            yield f"{asked.host}{asked.path} was requested against robots.txt"


def _outcomes(world: World) -> Iterator[str]:
    """Yield the URLs that did not end as they must, or were archived as often as not once; and records that are not
    what the server sent.
    """
    rows = _rows(world, "pages", "url", "outcome", "status", "warc_file", "warc_offset", "warc_length")
    truth = world.site.truth([SEED])
    ends = Counter((row["url"], row["outcome"]) for row in rows if row["status"] not in NO_PAGES)
    for url, outcome in truth.items():
        if ends[url, outcome] != 1 and not (world.changes and ends[url, outcome]):
            seen = [f"{row['outcome']} {row['status'] or ''}".strip() for row in rows if row["url"] == url]
            yield f"{url} should have ended once as {outcome}: {', '.join(seen) or 'never'}"
    yield from (f"{row['url']} is no page of this web" for row in rows if row["url"] not in truth)
    places = Counter((row["root"], row["warc_file"], row["warc_offset"]) for row in rows if row["warc_file"])
    yield from (f"{place} is the record of {count} rows" for place, count in places.items() if count > 1)
    for row in rows:
        if row["outcome"] == "fetched" and row["url"] in truth:
            yield from _record(world, row)
    links = Counter(row["from_url"] for row in _rows(world, "links", "from_url"))
    for url, outcome in truth.items() if not world.changes else ():  # Else a page has links from each visit.
        wanted = len(world.site.links(url)) if outcome == "fetched" else 0
        if outcome in ("fetched", "robots_denied") and links[url] != wanted:
            yield f"{url} has {wanted} links, and {links[url]} rows of them"


def wrong_revisits(world: World, stores: Sequence[Store]) -> list[str]:
    """Return the pages of a continuous crawl that are not, or not once, among those that its shards visit again."""
    waiting = Counter[bytes]()
    memories = []
    for store in stores:
        waiting.update(
            key[:2] + key[-8:] for key, data in store.scan("due", *PARTITIONED) if decode_entry(data).revisit
        )
        memories += [(key, decode_memory(data)) for key, data in store.scan("revisit", *PARTITIONED)]
    known = Counter(memory.address for _, memory in memories)
    return [f"{url} is known {known[url]} times" for url in world.site.truth([SEED]) if known[url] != 1] + [
        f"{memory.address} waits {waiting[key]} times"
        for key, memory in memories
        if waiting[key] != (memory.due_at > 0.0)
    ]


def _record(world: World, row: dict[str, Any]) -> Iterator[str]:
    with (row["root"] / "warc" / row["warc_file"]).open("rb") as file:
        file.seek(row["warc_offset"])
        packed = file.read(row["warc_length"])
    try:
        record = gzip.decompress(packed)
    except (OSError, EOFError, zlib.error) as error:
        yield f"the record of {row['url']} cannot be read: {error!r}"
        return
    holds = world.site.pages[row["url"]] in record or b"\r\nWARC-Type: revisit\r\n" in record
    if not holds or f"\r\nWARC-Target-URI: {row['url']}\r\n".encode() not in record:
        yield f"the record of {row['url']} is another"


def _rows(world: World, table: str, *columns: str) -> list[dict[str, Any]]:
    """Return the rows of a table of all shards, each with the directory where it is."""
    return [
        {**row, "root": machine.disk.root}
        for machine in world.machines
        for path in sorted((machine.disk.root / table).glob("*.parquet"))
        for row in pq.read_table(path, columns=list(columns)).to_pylist()
    ]
