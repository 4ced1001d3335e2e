"""Further: what else comes to some seeds of several shards, by dice of its own: all other crawls stay as they are.

A few hosts with many pages move while a session is good, or after a crash that a long delay outlasts. In continuous
crawls the number of shards goes up and back, or one shard has all pages and is cut off, or a batch crawl becomes
continuous; and feeds tell any shard of changed pages of any other. The owner of an address dies with the shard that
uses it, or a shard goes back to a checkpoint while all rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Literal

from msgspec.structs import replace

from gossamer.assembly.values import Shard
from gossamer.cluster.partitions import PartitionMap
from gossamer.config import Config
from gossamer.features.revisit import revisiting
from gossamer.model.links import Notice
from gossamer.url.site import PARTITIONS
from gossamer.world.dice import Dice
from tests.faults.schedule import (
    SHARDS_MAX,
    faults_of,
    has_login,
    is_continuous,
    is_covered,
    is_slow,
    is_uneven,
    shards_of,
)
from tests.faults.web import EXPIRES_S, site
from tests.faults.world import LOGIN_ONE_IN, Fault, Machine, World

Further = Literal["", "login", "crash", "back", "lonely", "turned", "owner", "behind"]
OF_LOGINS: tuple[Further, ...] = ("", "login", "login")
OF_MOVES: tuple[Further, ...] = ("", "crash", "", "crash")
OF_REVISITS: tuple[Further, ...] = ("", "back", "back", "lonely", "lonely", "turned", "turned")
OF_CHECKPOINTS: tuple[Further, ...] = ("", "behind")
"""By chance, of seeds with a login that lasts, of others that are not continuous, of continuous ones, and of those with
checkpoints and short delays.
"""
OWNER_STEPS = 6
BEHIND_STEPS = 7
BEHIND_S = 300.0
"""Steps until the owner and the user of an address die; and until an idle shard dies that is cut off from another one
afterwards, and for how long.
"""
DELAYS_S: dict[Further, float] = {"login": 20.0, "crash": 110.0}
"""Of a host: pages are left when it moves, or it outlasts the start of a process and a move."""
SESSION_S_MIN = 300.0
HOSTS_MIN = 3
HOSTS_MAX = 4
"""Where they have a long delay: each has many pages then."""
BACK_REQUESTS = 40
TURN_REQUESTS = 15
TURN_REQUESTS_MIN = 10
"""After which, about, the number of shards goes up, and back; after which a batch crawl becomes continuous."""
CUT_S_MIN = 600.0
CUT_S_MAX = 900.0
"""How long a shard that has all pages is cut off: by then all are due."""
READ_ONE_IN = 4
CHANGED_ONE_IN = 4
CHANGED_S_MAX = 60.0
IMPORTANCE_MAX = 3.0
"""Rounds in which a shard reads a feed; pages that it says have changed, how long ago, and how important they are."""
ENROLMENT_PAUSE_S = 30.0
"""Between the pages of a batch crawl as they get their due times: as if there were many more."""


def further(seed: int) -> Further:
    """Return what else comes to a seed."""
    dice = Dice(seed + 20)
    if is_continuous(seed):
        return OF_REVISITS[dice.below(len(OF_REVISITS))]
    if is_uneven(seed):
        return ""
    if has_login(seed):
        lasts = EXPIRES_S[seed // LOGIN_ONE_IN % len(EXPIRES_S)] >= SESSION_S_MIN
        return OF_LOGINS[dice.below(len(OF_LOGINS))] if lasts else ""
    if is_covered(seed):
        return "owner" if is_slow(seed) else OF_CHECKPOINTS[dice.below(len(OF_CHECKPOINTS))]
    return OF_MOVES[dice.below(len(OF_MOVES))]


def all_faults_of(seed: int) -> list[Fault]:
    """Return the faults of a seed, and those that come to it in addition."""
    faults = faults_of(seed)
    kind = further(seed)
    if kind == "lonely":  # Else it would soon be lonely no more.
        faults = [one for one in faults if one.kind != "scale"]
    if kind in ("owner", "behind"):  # These two come alone: after other faults, few crawls get there.
        faults = [one for one in faults if one.when == "ending"]
    if kind == "login":  # After an older checkpoint any login may be needed.
        faults = [one for one in faults if not one.restored and one.kind != "loss"]
    return [*faults, *further_of(seed)]


def further_of(seed: int) -> list[Fault]:
    """Return the faults that come to a seed in addition."""
    dice = Dice(seed + 21)
    kind = further(seed)
    shards = shards_of(seed)
    scale = Fault("scale", steps=1)
    fewer = scale._replace(steps=1 + dice.below(shards - 1))
    if kind == "login":
        return [fewer._replace(when="session")]
    if kind == "crash":
        return [Fault("kill", when="requested"), fewer._replace(when="requested")]
    if kind == "back":
        at = BACK_REQUESTS + dice.below(BACK_REQUESTS)
        there = scale._replace(requests=at, steps=shards + 1)
        return [there, scale._replace(requests=at + BACK_REQUESTS + dice.below(BACK_REQUESTS), steps=shards)]
    if kind == "lonely":
        return [Fault("cut", jump_s=dice.uniform(CUT_S_MIN, CUT_S_MAX), when="lonely")]
    kill = scale._replace(kind="kill", shard=dice.below(shards))
    if kind == "owner":
        steps = [dice.below(OWNER_STEPS) for _ in range(2)]
        if dice.below(2):
            return [kill._replace(steps=steps[0], when="returned")]
        return [kill._replace(steps=steps[0], when="lent"), kill._replace(steps=steps[1], when="borrowed")]
    if kind == "behind":  # What the restored one finds again is on its way while all the others rest.
        dies = kill._replace(steps=dice.below(BEHIND_STEPS), restored=True, when="resting")
        return [dies, dies._replace(kind="cut", restored=False, jump_s=BEHIND_S)]
    if kind == "turned":
        at = TURN_REQUESTS_MIN + dice.below(TURN_REQUESTS)
        turn = scale._replace(kind="turn", requests=at)
        return [turn, scale._replace(requests=at, steps=shards + 1 + dice.below(SHARDS_MAX - shards))]
    return []


def map_of(seed: int) -> PartitionMap:
    """Return how the partitions of a seed are divided at first: evenly, or nearly all are with the first or the last
    shard. What the last one has moves when there are fewer.
    """
    shards = shards_of(seed)
    if not is_uneven(seed) and further(seed) not in ("login", "crash", "lonely"):
        return PartitionMap.even(shards)
    few = [max(0, one + shards - PARTITIONS) for one in range(PARTITIONS)]
    return PartitionMap(1, shards, few if is_uneven(seed) else [shards - 1 - one for one in few])


def slow_down(world: World) -> World:
    """Return a world with what its seed has in addition: a few hosts with many pages and a long delay."""
    if (delay_s := DELAYS_S.get(further(world.seed))) is not None:
        world.delay_s = delay_s
        world.site = site(Dice(world.seed + 23), HOSTS_MAX, HOSTS_MIN)
    return world


def sets_in(seed: int) -> tuple[str, ...]:
    """Return further settings of the crawl of a seed: one host in memory, so that others wait on disk."""
    return ("frontier.active_hosts_max=1",) if further(seed) == "crash" else ()


def small(seed: int) -> list[tuple[object, str, object]]:
    """Return bounds so small that they are met where a batch crawl becomes a continuous one."""
    if further(seed) != "turned":
        return []
    return [(revisiting, "SLICE", 1), (revisiting, "PAUSE_S", ENROLMENT_PAUSE_S)]


def in_batch(config: Config, faults: Sequence[Fault]) -> Config | None:
    """Return the configuration of a continuous crawl that begins as a batch crawl; None where it does not."""
    if not any(fault.kind == "turn" for fault in faults):
        return None
    return replace(config, crawl=replace(config.crawl, mode="batch"))


Reading = tuple[int, Callable[[], None]]


class Feeds:
    """What shards of a continuous crawl read of changes, of pages that may be any shard's."""

    def __init__(self, world: World) -> None:
        self._pages = list(world.site.pages) if world.changes and further(world.seed) else []
        self._dice = Dice(world.seed + 22)

    def read(self, shards: Mapping[int, Shard], machines: Sequence[Machine]) -> Reading | None:
        """Have one of some shards read a feed now and then; return which, and what it does then."""
        if not self._pages or not shards or self._dice.below(READ_ONE_IN):
            return None
        number = sorted(shards)[self._dice.below(len(shards))]
        now = machines[number].now()
        found = [
            (url, now - self._dice.uniform(0.0, CHANGED_S_MAX), self._dice.uniform(0.0, IMPORTANCE_MAX))
            for url in self._pages
            if not self._dice.below(CHANGED_ONE_IN)
        ]
        return number, partial(_note, shards[number], found, now)


def _note(shard: Shard, found: Sequence[tuple[str, float, float]], now: float) -> None:
    """Have a shard take in pages with their last change and their importance, as `SitemapHints` does."""
    recrawl = shard.ring.features.recrawl
    namer = shard.ring.urls.namer
    for text, changed_at, importance in found if recrawl is not None else ():
        if (url := namer.name(text)) is not None and recrawl is not None:
            recrawl.schedule.note(Notice(url, "feed", changed_at=changed_at, importance=importance), now)
