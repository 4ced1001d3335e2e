"""World: the time, the web and the name service of one trial, the machines that crawl in it, and how a crawl
reaches it: the protocol module and the resolver that it names. Nothing in it depends on anything but its seed.
"""

from __future__ import annotations

import asyncio
import errno
from collections import Counter
from collections.abc import Callable
from math import inf
from pathlib import Path
from typing import Any, Literal, NamedTuple

from msgspec.structs import replace

from gossamer.assembly.values import Shard
from gossamer.cluster.exchange import Exchange
from gossamer.model.visits import Failure, Located, Reply, Request
from gossamer.world.dice import Dice
from tests.faults.disk import ModelDisk
from tests.faults.web import HOSTS_MAX, HOSTS_OF_SHARDS, LOGIN, ROBOTS, Session, Use, hash_of, needs_session, site

BEGIN = 1_767_225_600.0
BUSY_S = 30.0
"""Before a host that is busy is requested again, at least."""
SKEW_S_MAX = 600.0
"""By which the clocks of two machines differ."""
HOSTS_AN_ADDRESS = 3
CHAIN_ONE_IN = 3
ADDRESS_DELAYS_S = (0.5, 0.5, 40.0, 15.0, 0.5)
"""By seed: of an address that hosts of several shards share. The long ones outlast a restart and the first commit."""
CROWDED_ONE_IN = 3
"""Seeds of several shards in which all hosts have one address, where its delay is short."""
LOGIN_ONE_IN = 3
"""Seeds of several shards with a host that needs a login."""
DELAYS_S = (1.0, 20.0, 1.0)
"""By seed: of a host of several shards."""
SEEDS_APART = 1_000_003
"""Between the seeds of two machines' disks."""
FAILURES = ("busy", "host", "page")
"""The server says that it is busy; or nothing answers, at the host, or for this page."""
FAULTS_MAX = 2
"""Attempts of one page that fail before it is answered: fewer than a crawl makes."""
DOUBLE_ONE_IN = 5
"""Seeds of one shard in which a host may get two requests at once."""
INTERLEAVES_ONE_IN = 4
"""Seeds whose commits run beside the loop; the others run them at once, at half the cost."""
GIVE_WAY_ONE_IN = 3
"""Steps of a thread on the disk after which the loop runs."""
TROUBLES_MAX = 2
"""How often a fault of the web meets one host, or one URL."""
CHANGE_S_MIN = 30.0
CHANGE_PERIODS = 8
"""How often the page changes that changes most; the others in twice the time, and so on."""
REQUEST_S_MAX = 8.0
DOWN_S_MIN = 0.01
DOWN_S_MAX = 120.0


class Killed(KeyboardInterrupt):
    """The process ends here, in the middle of its work."""


class SeenRequest(NamedTuple):
    """One request as the servers saw it."""

    host: str
    path: str
    began: float
    ended: float
    life: int
    machine: int
    is_busy: bool
    """The server said that it is."""


When = Literal[
    "", "new", "lent", "borrowed", "returned", "asking", "redirected", "copying", "giving", "given", "taken", "saved",
    "resting", "ending", "requested", "session", "lonely",
]  # fmt: skip
"""What a fault waits for instead of a number of requests: see `several` and `situations`."""
Kind = Literal[
    "kill", "full", "write", "fsync", "dns", "reset", "frames", "cut", "coordinator", "scale", "loss", "suspend", "turn"
]


class Fault(NamedTuple):
    """What happens to one process of the crawl, and to its machine."""

    kind: Kind
    """The process is killed; or from now on there is no room, or one write or one sync fails. Or, for a while, it
    is suspended, names are looked up slowly, not at all or wrongly, or servers reset connections in the middle of a
    body; or what `several` has happen between shards.
    """
    requests: int = 0
    """It happens after this number of requests,"""
    steps: int = 0
    """and after this number of steps,"""
    in_disk: bool = False
    """of those alone that change what is on disk."""
    power: bool = False
    """Then the power is cut."""
    jump_s: float = 0.0
    """By which the machine's clock is set, before the next process starts; or how long it lasts."""
    shard: int = 0
    restored: bool = False
    """The machine is lost, and another goes on from the shard's last checkpoint."""
    when: When = ""
    """It happens in this situation. A process that it ends is followed by another one at once."""


REFUSALS = {"full": ("write", errno.ENOSPC), "write": ("write", errno.EIO), "fsync": ("fsync", errno.EIO)}
"""The call that a fault has fail, and with which error."""


class World:
    """Time that passes when nothing else can happen, and servers that fail."""

    def __init__(self, seed: int, shards: int = 1, *, changes: bool = False) -> None:
        """`changes`: its pages change."""
        self.seed = seed
        self.changes = changes
        self.shards = shards
        several = shards > 1
        self.site = site(
            Dice(seed),
            HOSTS_OF_SHARDS if several else HOSTS_MAX,
            is_chain=several and not seed % CHAIN_ONE_IN and not changes,
        )
        self.at_once = 1 if several or seed % DOUBLE_ONE_IN else 2
        """Requests at once to one host."""
        # Pages that are visited again must be worth more visits than politeness allows, and not many times as many.
        is_slow = several and not changes
        self.address_delay_s = ADDRESS_DELAYS_S[seed % len(ADDRESS_DELAYS_S) if is_slow else 0]
        self.delay_s = DELAYS_S[seed % len(DELAYS_S) if is_slow else 0]
        is_crowded = not seed % CROWDED_ONE_IN and self.address_delay_s == ADDRESS_DELAYS_S[0]
        self.hosts_an_address = HOSTS_OF_SHARDS if is_crowded else HOSTS_AN_ADDRESS
        if not several:
            self.hosts_an_address = 1
        needs_login = is_slow and not seed % LOGIN_ONE_IN
        self.session = Session(seed // LOGIN_ONE_IN, self.address_delay_s) if needs_login else None
        """Where the pages of one host need one."""
        self.elapsed_s = 0.0
        self.steps = 0
        self.interleaves = not seed % INTERLEAVES_ONE_IN if shards == 1 else not seed // 4 % 2
        self.machines: list[Machine] = []
        self.unwinding: list[asyncio.Task[Any]] = []
        """Those of a killed process that are not done. The turns that they take depend on the order of sets."""
        self.log: list[SeenRequest] = []
        self.running: dict[SeenRequest, tuple[int, str]] = {}
        """Requests under way, each with its machine and its address."""
        self.forgot: list[float] = []
        """When a machine lost what it knew beyond its last commit or checkpoint: its power was cut, or it was lost."""
        self.faulty: list[str] = []
        """What was found wrong at a commit."""
        self.troubles: dict[Fault, float] = {}
        """Faults of the web, and until when they last: from their first effect on."""
        self._troubled: Counter[tuple[Fault, str]] = Counter()
        self.dice = Dice(seed + 1)
        self.attempts: Counter[str] = Counter()

    def address(self, host: str) -> str:
        """Return a host's address: its own, or one that hosts of several shards share."""
        return f"127.0.0.{int(host[1]) // self.hosts_an_address + 1}"

    def trouble(self, kind: Kind, whom: str) -> Fault | None:
        """Return the fault that a host, or a URL, meets now: each a few times, since attempts are limited."""
        for fault, until in self.troubles.items():
            if fault.kind == kind and len(self.log) >= fault.requests and self.elapsed_s < until:
                if until == inf:
                    self.troubles[fault] = self.elapsed_s + abs(fault.jump_s)
                self._troubled[fault, whom] += 1
                return fault if self._troubled[fault, whom] <= TROUBLES_MAX else None
        return None

    def answer(self, request: Request, use: Use, began: float, lasts_s: float) -> Reply | Failure:
        """Answer as the URL's host does at this attempt."""
        url = request.url
        if self.session is not None and url == LOGIN:
            self.faulty += self.session.needless(use.at, self.forgot)
            return self._reply(url, 200, self.session.begin(use.at), began, lasts_s, "application/json")
        if how := self.fails(url, self.attempts[url]):
            if how == "busy":
                return self._reply(url, 503, b"busy", began, lasts_s)
            return Failure(
                "timeout", "no answer", retry=True, host_level=how == "host", started_at=began, fetch_s=lasts_s
            )
        session = self.session if needs_session(url) else None
        if session is not None and not session.admits(request, use):
            return self._reply(url, 401, b"no session", began, lasts_s)
        if url in self.site.robots:
            return self._reply(url, 301, b"", began, lasts_s, location=self.site.robots[url])
        if url.endswith("/robots.txt"):
            return self._reply(url, 200, ROBOTS, began, lasts_s, "text/plain")
        if url in self.site.redirects:
            return self._reply(url, 301, b"", began, lasts_s, location=self.site.redirects[url])
        if url in self.site.missing:
            return self._reply(url, 404, b"no such page", began, lasts_s)
        reply = self._reply(url, 200, self.site.pages[url] + self._version(url), began, lasts_s)
        if (fault := self.trouble("reset", url)) is not None:
            came = replace(reply, body=reply.body[: fault.steps], truncated="disconnect") if fault.steps else None
            return Failure("connect_error", "reset", retry=True, started_at=began, fetch_s=lasts_s, came=came)
        return reply

    def fails(self, url: str, attempt: int) -> str:
        """Return how an attempt at a URL fails; empty if it does not."""
        if url == LOGIN:
            return ""
        faults = Dice(hash_of(self.seed, url)).below(3 * FAULTS_MAX)
        if attempt > min(faults, FAULTS_MAX) or faults >= 2 * FAULTS_MAX:
            return ""
        return FAILURES[(faults + attempt) % len(FAILURES)]

    def _version(self, url: str) -> bytes:
        """Return what a page has at its end for now, where pages change."""
        period_s = CHANGE_S_MIN * 2 ** (hash_of(self.seed, url) % CHANGE_PERIODS)
        return b"<p>Version %d</p>" % (self.elapsed_s / period_s) if self.changes else b""

    def _reply(
        self, url: str, status: int, body: bytes, began: float, lasts_s: float, media_type: str = "text/html",
        location: str = "",
    ) -> Reply:  # fmt: skip
        headers = (("Content-Type", media_type), *((("Location", location),) if location else ()))
        return Reply(
            url, status, headers, body, "127.0.0.1", began, lasts_s, wire_bytes=len(body) + 100, media_type=media_type,
            request_head=b"GET / HTTP/1.1\r\n\r\n",
        )  # fmt: skip


UNUSED_ADDRESS = "127.0.0.99"
"""At which no server answers."""


class Machine:
    """A clock, a disk, and one fault a life, of the process that crawls here.

    `step` is called before and after what touches the disk or the web, and at each turn of the event loop. Where the
    process is to be killed, the crawl's directory is copied as that leaves it, and the process ends.
    """

    def __init__(self, world: World, directory: Path, number: int = 0) -> None:
        """Take a directory in which each life has its own."""
        self.world = world
        self.number = number
        self.fault: Fault | None = None
        """What is still to come in this life."""
        self.life = 0
        self.boots = 0
        self.give_way: Callable[[], None] | None = None
        """Lets the loop run, where another thread does."""
        self._dice = Dice(world.seed + 3 + number * SEEDS_APART)
        self.disk = ModelDisk(directory / "life-0", self._dice, self.disk_step, self._refuses)
        self._next_disk: ModelDisk | None = None
        self._refused = "", 0
        self._set_by_s = 0.0
        self.suspended_until = 0.0
        """Until then its process is suspended."""
        self.held: list[asyncio.Handle] = []
        """Its callbacks that came due meanwhile."""
        self.retries: dict[bytes, float] | None = None
        """Where the clock was not set ahead since: until when each URL that is tried again had to wait at the last
        start, by the world's time.
        """
        world.machines.append(self)

    @property
    def is_over(self) -> bool:
        """The process was killed: nothing that it still does counts."""
        return self._next_disk is not None

    @property
    def is_suspended(self) -> bool:
        """Whether its process is suspended."""
        return self.suspended_until > self.world.elapsed_s and not self.is_over

    # ---- the clock (`gossamer.world.clock.Clock`), and the machine's

    def now(self) -> float:
        """Return seconds since 1970, by the machine's clock."""
        return BEGIN + self._set_by_s + self.world.elapsed_s

    def work_s(self) -> float:
        """Return the time, of which work takes none here."""
        return self.world.elapsed_s

    process_work_s = work_s

    async def sleep_until(self, instant: float) -> None:
        """Return at an instant of this clock."""
        await asyncio.sleep(max(0.0, instant - self.now()))

    def wall_offset_s(self) -> float:
        """Return by how much the machine's clock is ahead of the steady one."""
        return BEGIN + self._set_by_s

    def boot_id(self) -> bytes:
        """Return what changes with each start of the machine."""
        return b"boot" + self.boots.to_bytes(12)

    def set_clock(self, by_s: float) -> None:
        """Set the machine's clock."""
        self._set_by_s += by_s

    # ---- faults

    def empty_disk(self) -> ModelDisk:
        """Return the disk of another machine, which has nothing on it."""
        root = self.disk.root.with_name(f"another-{self.life}")
        return ModelDisk(root, self._dice, self.disk_step, self._refuses)

    def step(self, *, disk: bool = False) -> None:
        """Let one step pass, or die at it."""
        if self.is_over:
            if self.give_way is not None:
                raise Killed
            return
        self.world.steps += 1
        fault = self.fault
        if fault is None or len(self.world.log) < fault.requests or (fault.in_disk and not disk):
            return
        if fault.steps > 0:
            self.fault = fault._replace(steps=fault.steps - 1)
            return
        self.fault = None
        if fault.kind == "kill":
            self._next_disk = self._after(fault)
            raise Killed
        self._refused = REFUSALS[fault.kind]

    def disk_step(self) -> None:
        """Let one step of the disk pass; the loop may run meanwhile where another thread waits for the disk."""
        self.step(disk=True)
        if self.give_way is not None and not self.world.dice.below(GIVE_WAY_ONE_IN):
            self.give_way()
            self.step()

    def next_life(self, fault: Fault) -> float:
        """Prepare what the next process finds; return how long it takes until that is started."""
        before = self.disk
        self.disk = self._next_disk or (self._after(fault) if fault.power else self.disk)
        if before is not self.disk:
            before.let_go()
        self.fault = None
        self._next_disk = None
        self._refused = ("", 0)
        self.life += 1
        self.boots += fault.power
        if fault.power or fault.restored:
            self.world.forgot.append(self.world.elapsed_s)
        dice = self.world.dice
        down_s = dice.uniform(0.0, DOWN_S_MAX) if dice.below(2) and not fault.when else DOWN_S_MIN
        self.set_clock(fault.jump_s)
        if fault.jump_s > 0.0 or fault.power or fault.restored:  # The last of these may bring an earlier commit back.
            self.retries = None
        return down_s

    def _after(self, fault: Fault) -> ModelDisk:
        root = self.disk.root.with_name(f"life-{self.life + 1}")
        return self.disk.cut(root) if fault.power else self.disk.copy_after_kill(root)

    def _refuses(self, call: str) -> int:
        refused, number = self._refused
        if call != refused:
            return 0
        if number != errno.ENOSPC:
            self._refused = "", 0  # One call fails; a full disk stays full.
        return number

    # ---- the web

    async def fetch(self, request: Request) -> Reply | Failure:
        """Answer as the request's host does at this attempt."""
        self.step()
        if self.is_over:
            raise asyncio.CancelledError
        world = self.world
        url = request.url
        life = self.life
        if request.ip == UNUSED_ADDRESS:
            return Failure(
                "connect_error", "refused", retry=True, host_level=True, ip=UNUSED_ADDRESS, started_at=self.now()
            )
        host, _, path = url.removeprefix("http://").partition("/")
        began = self.now()
        began_s = world.elapsed_s
        lasts_s = world.dice.uniform(0.01, REQUEST_S_MAX) ** 2 / REQUEST_S_MAX
        world.attempts[url] += 1
        attempt = world.attempts[url]
        is_busy = False
        running = SeenRequest(host, "/" + path, began_s, began_s, life, self.number, is_busy)
        world.running[running] = self.number, request.ip
        try:
            await asyncio.sleep(lasts_s)
            is_busy = world.fails(url, attempt) == "busy"
        finally:
            del world.running[running]
            if life == self.life:
                # Where the process is suspended, the server has answered long before that is seen.
                ended_s = min(world.elapsed_s, began_s + lasts_s)
                world.log.append(SeenRequest(host, "/" + path, began_s, ended_s, life, self.number, is_busy))
        self.step()
        return world.answer(request, Use(world.elapsed_s, self.number, self.life), began, lasts_s)


LOOKUPS = ("slow", "dead", "wrong")
LOOKUP_S = 10.0
"""How long a slow or a dead one takes, and how long a wrong one is believed."""


class SimulatedHttp:
    """The protocol module that a trial names in `components.protocols`: it asks the world that is its clock."""

    default_port = 80
    has_robots = True

    def __init__(self, *, options: object, agent: str, clock: Machine) -> None:
        self.fetch = clock.fetch

    async def close(self) -> None:
        """Nothing is held."""


class SimulatedResolver:
    """The resolver that a trial names in `components.resolver`: each host has an address, found after a while."""

    def __init__(self, *, options: object, clock: Machine) -> None:
        self._machine = clock

    def cached(self, host: str) -> Located | None:
        """Return None: nothing is known without a lookup."""
        return None

    async def resolve(self, host: str) -> Located | Failure:
        """Return a host's own address."""
        self._machine.step()
        fault = self._machine.world.trouble("dns", host)
        how = LOOKUPS[fault.steps % len(LOOKUPS)] if fault is not None else "well"
        await asyncio.sleep(0.05 if how == "well" else LOOKUP_S)
        if how == "dead":
            return Failure("dns_error", "name resolution: timeout", retry=True, host_level=True)
        if how == "wrong":
            return Located((UNUSED_ADDRESS,), self._machine.now() + LOOKUP_S)
        return Located((self._machine.world.address(host),), self._machine.now() + 600.0)

    async def close(self) -> None:
        """Nothing is held."""


def exchange_of(shard: Shard) -> Exchange:
    """Return the exchange of one of several shards with the others."""
    assert shard.membership is not None
    return shard.membership.exchange
