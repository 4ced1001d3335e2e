"""Schedule: which faults come to the trial of a seed with several shards, and what kind of crawl it is."""

from __future__ import annotations

from gossamer.world.dice import Dice
from tests.faults.world import ADDRESS_DELAYS_S, LOGIN_ONE_IN, SKEW_S_MAX, Fault, Kind, When

FAULTS_MAX = 5
REQUESTS = 60
REQUESTS_FIRST = 3
STEPS = 160
DISK_STEPS = 40
"""As in `trial`. A fourth of the faults happen among the first requests."""
TOGETHER_ONE_IN = 2
TOGETHER_REQUESTS = 6
EARLY_ONE_IN = 3
"""Seeds whose faults happen at about the same time, and within how many requests; those of them at the beginning."""
OF_A_SHARD: tuple[Kind, ...] = ("kill", "kill", "kill", "kill", "full", "write", "fsync")
KINDS: tuple[Kind, ...] = (*OF_A_SHARD, "dns", "reset", "frames", "frames", "cut", "cut", "coordinator")
LAST_STEPS = 10
GIVING_FAULTS_MAX = 2
"""Steps of a fault after the order to end; and how many happen soon after a checkpoint has partitions that a shard
gave.
"""
OF_ANY: tuple[When, ...] = ("new", "lent", "lent", "lent", "lent", "lent", "borrowed", "asking", "asking")
OF_DELAYS: tuple[When, ...] = ("borrowed", "borrowed", "borrowed", "returned", "redirected")
OF_MOVES: tuple[When, ...] = ("copying",)
OF_CHECKPOINTS: tuple[When, ...] = ("saved", "saved", "resting", "resting")
OF_BOTH: tuple[When, ...] = ("giving", "taken", "taken")
"""Situations: of any seed, of those with a long delay, with partitions that move, with checkpoints, or with both."""
FREE_ONE_IN = 4
SITUATED_MAX = 2
"""Seeds without faults that wait for a situation, and how many the others have at most."""
GIVING_STEPS = 4
"""How many times as many steps it may be until what was given has arrived."""
SUSPENDED_ONE_IN = 4
SUSPENDED_MAX = 3
"""Seeds in which shards are suspended, and how often at most."""
OF_SUSPENSIONS: tuple[When, ...] = ("", "borrowed", "lent")
SUSPENDED_S_MIN = 5.0
SUSPENDED_S_MAX = 90.0
"""For how long: leases of addresses end meanwhile, or do not."""
AWAY_S_MAX = 120.0
AWAY_S_LONG = 600.0
"""How long two shards are cut off from each other, or the coordinator is away; and while one waits for the other."""
SHARDS_MAX = 4
SCALINGS_MAX = 3
"""That a trial has at most after a change of their number; and how many of those."""
LOST_ONE_IN = 2
"""Seeds with checkpoints that lose all machines."""
CONTINUOUS_ONE_IN = 4


def faults_of(seed: int) -> list[Fault]:
    """Return what is to happen in the trial of a seed."""
    dice = Dice(seed + 2)
    faults = [_fault(dice, seed) for _ in range(dice.below(FAULTS_MAX + 1))]
    scalings = scalings_of(seed)
    if not dice.below(TOGETHER_ONE_IN):
        faults = _together(dice, faults, scalings)
        scalings = _together(dice, scalings, scalings)
    given = _after_giving(dice, seed, scalings)
    situated = [*situation_faults(seed, scalings), *suspensions_of(seed)]
    return [*faults, *scalings, *given, *loss_of(seed, scalings), *last_of(seed), *situated]


def _after_giving(dice: Dice, seed: int, scalings: list[Fault]) -> list[Fault]:
    """Return losses of machines whose shard gave partitions, or took them."""
    count = dice.below(1 + GIVING_FAULTS_MAX) if scalings and is_covered(seed) else 0
    kill = Fault("kill", restored=True, when="given")
    return [kill._replace(steps=dice.below(STEPS), shard=dice.below(2)) for _ in range(count)]


def _together(dice: Dice, faults: list[Fault], scalings: list[Fault]) -> list[Fault]:
    """Return faults that happen at about the same time, while partitions move if they do: those of a shard soon after
    the start of its process, and half of them to one shard.
    """
    at = min((one.requests for one in scalings if one.kind == "scale"), default=dice.below(REQUESTS_FIRST))
    at = at if dice.below(EARLY_ONE_IN) else 0
    whom = dice.below(SHARDS_MAX if scalings else 2)
    found = []
    for fault in faults:
        one = fault._replace(requests=at + dice.below(TOGETHER_REQUESTS))
        if one.kind in OF_A_SHARD:
            steps = dice.below(DISK_STEPS if one.in_disk else STEPS)
            one = one._replace(steps=steps, shard=one.shard if dice.below(2) else whom)
        found.append(one)
    return found


def loss_of(seed: int, scalings: list[Fault]) -> list[Fault]:
    """Return the loss of all machines and of the coordinator's record: of some seeds with checkpoints."""
    dice = Dice(seed + 6)
    before = min((one.requests for one in scalings if one.kind == "scale"), default=0)
    is_lost = is_covered(seed) and not dice.below(LOST_ONE_IN)
    requests = dice.below(REQUESTS)
    return [Fault("loss", before + requests)] if is_lost else []


def last_of(seed: int) -> list[Fault]:
    """Return the kill of a shard between the order to end and its last commit."""
    dice = Dice(seed + 4)
    in_disk = dice.below(2) > 0
    is_lost = dice.below(3) > 0
    steps = dice.below(LAST_STEPS)
    kill = Fault("kill", steps=steps, in_disk=in_disk, shard=dice.below(shards_of(seed)), when="ending")
    return [kill._replace(restored=is_lost and is_covered(seed))]


def situation_faults(seed: int, scalings: list[Fault]) -> list[Fault]:
    """Return what happens in situations of some seeds."""
    dice = Dice(seed + 7)
    is_safe = is_covered(seed)
    moves = bool(scalings) or is_uneven(seed)
    if not dice.below(FREE_ONE_IN):
        return []
    situations = [
        *OF_ANY,
        *(OF_DELAYS * 4 if is_slow(seed) else ()),
        *(OF_MOVES * 4 if moves else ()),
        *(OF_CHECKPOINTS if is_safe else ()),
    ]
    situations += OF_BOTH * 4 if moves and is_safe else ()
    situations += () if is_safe else ("new", "new", "new")  # Else checkpoints number the starts.
    found = []
    for _ in range(1 + dice.below(SITUATED_MAX)):
        when = situations[dice.below(len(situations))]
        kind: Kind = "cut" if when == "asking" else "scale" if when == "redirected" else "kill"
        is_lost = is_safe and (when not in (*OF_ANY, *OF_DELAYS) or not dice.below(3))
        steps = dice.below(STEPS * (GIVING_STEPS if when == "giving" else 1))
        fault = Fault(kind, steps=steps, shard=dice.below(SHARDS_MAX), restored=is_lost, when=when)
        if when == "asking":
            fault = fault._replace(jump_s=dice.uniform(AWAY_S_MAX, AWAY_S_LONG), restored=False)
        if kind == "scale":
            fault = fault._replace(steps=1 + dice.below(SHARDS_MAX), restored=False)
        found.append(fault)
        if when == "resting":  # What the restored one finds again is on its way while all the others rest.
            found.append(fault._replace(kind="cut", restored=False, jump_s=dice.uniform(AWAY_S_MAX, AWAY_S_LONG)))
    return found


def suspensions_of(seed: int) -> list[Fault]:
    """Return when shards are suspended: of some seeds. A login's server counts time by what the crawl has seen."""
    dice = Dice(seed + 8)
    if dice.below(SUSPENDED_ONE_IN) or has_login(seed):
        return []
    found = []
    for _ in range(1 + dice.below(SUSPENDED_MAX)):
        when = OF_SUSPENSIONS[dice.below(len(OF_SUSPENSIONS))]
        requests = dice.below(REQUESTS)
        for_s = dice.uniform(SUSPENDED_S_MIN, SUSPENDED_S_MAX)
        found.append(Fault("suspend", requests, jump_s=for_s, shard=dice.below(shards_of(seed)), when=when))
    return found


def scalings_of(seed: int) -> list[Fault]:
    """Return what changes of the number of shards come to the trial of a seed: of half of them none, but where pages
    are visited again.
    """
    dice = Dice(seed + 3)
    scalings = max(dice.below(2), is_continuous(seed)) * (1 + dice.below(SCALINGS_MAX))
    kills = [
        _fault(dice, seed)._replace(
            kind="kill", shard=dice.below(SHARDS_MAX), restored=dice.below(2) > 0 and is_covered(seed)
        )
        for _ in range(dice.below(SCALINGS_MAX) if scalings else 0)
    ]
    return [*kills, *(Fault("scale", dice.below(REQUESTS), 1 + dice.below(SHARDS_MAX)) for _ in range(scalings))]


def _fault(dice: Dice, seed: int) -> Fault:
    kind = KINDS[dice.below(len(KINDS))]
    in_disk = dice.below(4) > 0
    power = not dice.below(3)
    jump_s = 0.0 if dice.below(3) else dice.uniform(-SKEW_S_MAX, SKEW_S_MAX)
    requests = dice.below(REQUESTS if dice.below(4) else REQUESTS_FIRST)
    steps = dice.below(DISK_STEPS)
    shard = dice.below(shards_of(seed))
    is_lost = dice.below(3) > 0
    if kind not in OF_A_SHARD:
        return Fault(kind, requests, steps, jump_s=dice.uniform(0.0, AWAY_S_MAX), shard=shard)
    steps += 0 if in_disk else dice.below(STEPS)
    return Fault(kind, requests, steps, in_disk, power, jump_s, shard, restored=is_lost and is_covered(seed))


def shards_of(seed: int) -> int:
    """Return how many shards the trial of a seed begins with."""
    return 2 + seed % 2


def is_covered(seed: int) -> bool:
    """Say whether the shards of a seed make checkpoints."""
    return seed // 2 % 2 == 0


def is_uneven(seed: int) -> bool:
    """Say whether one shard of a seed has nearly all at first, and gives some of it to the others."""
    return seed % 7 == 3


def is_continuous(seed: int) -> bool:
    """Say whether the pages of a seed change, and are visited again until all is visited and has happened."""
    return seed % CONTINUOUS_ONE_IN == CONTINUOUS_ONE_IN - 2


def has_login(seed: int) -> bool:
    """Say whether a host of a seed needs a login."""
    return not is_continuous(seed) and not seed % LOGIN_ONE_IN


def is_slow(seed: int) -> bool:
    """Say whether the addresses of a seed have a long delay."""
    return not is_continuous(seed) and ADDRESS_DELAYS_S[seed % len(ADDRESS_DELAYS_S)] > ADDRESS_DELAYS_S[0]
