"""Ray: the only file that knows it. It starts shards and a coordinator, starts them again, and carries what they say.

Each shard is an actor that keeps a process going (`ShardProcess`); the coordinator is one too, on the machine that the
crawl was started from. What they do is in `shard_process` and `coordination`; here is only how calls travel.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import secrets
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import ray
import ray.exceptions
from ray._private import ray_constants
from ray._raylet import GcsClient  # type: ignore[attr-defined]
from ray.runtime_env import RuntimeEnv
from ray.util.metrics import Gauge
from ray.util.placement_group import placement_group
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy, PlacementGroupSchedulingStrategy

from gossamer.cluster.aggregate import GAUGES, LABELS, figures_of
from gossamer.cluster.balance import Balance
from gossamer.cluster.coordination import Coordination, CoordinatorRecord, Look, ShardAnswer
from gossamer.cluster.job import ASKED, ClusterPlan, ShardJob, encode
from gossamer.cluster.options import ClusterOptions
from gossamer.cluster.partitions import RECORD_FILE, PartitionMap
from gossamer.cluster.shard_process import ShardProcess, ShardStart
from gossamer.model.errors import ConfigError, CrawlFailedError
from gossamer.world.allocators import FRUGAL
from gossamer.world.clock import WallClock
from gossamer.world.files import write_whole
from gossamer.world.process import DirectoryLock, child_environment
from gossamer.world.reaper import end, reaper_of

CARRY_S_MAX = 10.0
"""A frame that has not arrived by then is taken for lost: it is sent again."""
ASK_S_MAX = 55.0
CALL_S_MAX = 10.0
"""How long the coordinator is waited for: Ray keeps calls to an actor that has not begun."""
STARTS_MAX = 3
CONNECT_S_MAX = 5.0
LOCK_S_MAX = 60.0
"""A killed coordinator frees its record within this."""
COMMON: Any = {"max_restarts": -1, "max_task_retries": 0}
"""Of all actors. Ray repeats no call: the caller repeats a query, the sender its frames."""
LOOPBACK = ("127.", "localhost:", "[::1]:")
FOLDER = "gossamer-ray-"
"""Folder of a private Ray's sockets and logs, in the system's temporary directory; a process id and a random part
follow. It is short because the path of a socket has at most 107 bytes."""
_encode = msgspec.msgpack.Encoder(enc_hook=str).encode
_decode = msgspec.msgpack.decode


class ShardActor:
    """Keeps one shard. Ray starts it again wherever there is a machine; its state is on disk."""

    def __init__(self, plan: bytes, shard: int, namespace: str) -> None:
        self._plan = msgspec.json.decode(plan, type=ClusterPlan)
        self._shard = shard
        self._namespace = namespace
        self._node: str = self._plan.node or ray.get_runtime_context().get_node_id()
        self._peers: dict[int, Any] = {}
        self._process: ShardProcess | None = None
        # The metrics of a private Ray are exported nowhere.
        self._gauges = {} if self._plan.node else {name: Gauge(name, what, LABELS) for name, what in GAUGES.items()}
        self._labels = {"crawl": Path(self._plan.directory).name, "shard": str(shard)}
        self._keeping: asyncio.Task[None] | None = None

    async def look(self, question: bytes) -> bytes:
        """Answer a round's question. The first one starts the shard: so does the first after a restart."""
        keeper = self._started()
        seen = await keeper.look(
            self._shard, self._node, _decode(question, type=Look), self._plan.answer_s_max
        )  # fmt: skip
        if self._gauges:
            for name, figure in figures_of(seen.status).items():
                self._gauges[name].set(figure, self._labels)
        return _encode(seen)

    async def ask(self, question: bytes) -> bytes:
        """Have the shard answer a verb."""
        answer = await self._started().ask(_decode(question, type=dict[str, object]), ASK_S_MAX)
        return _encode(answer if answer is not None else {"ok": False, "error": f"shard {self._shard} is starting"})

    async def deliver(self, sender: int, frame: bytes) -> bool:
        """Take a frame of another shard."""
        return self._process is not None and self._process.deliver(sender, frame)

    def _started(self) -> ShardProcess:
        if self._process is None:
            start = ShardStart(
                command=[sys.executable, "-P", *self._plan.command],
                job=self._job,
                environment=FRUGAL | child_environment(),
                slots=self._plan.state_on(self._node, self._shard),
                process_s_max=self._plan.process_s_max,
            )
            self._process = ShardProcess(start, self._carry, WallClock())
            self._keeping = asyncio.create_task(self._process.run())
            self._keeping.add_done_callback(_ended)
        return self._process

    def _job(self, line: int) -> bytes:
        plan = self._plan
        return encode(
            ShardJob(
                directory=plan.directory_on(self._node),
                crawl=plan.directory,
                config=plan.config,
                shard=self._shard,
                shards=plan.shards,
                node=self._node,
                line=line,
                parent=os.getpid(),
                tenure_s=plan.tenure_s,
            )
        )

    async def _carry(self, to: int, frame: bytes) -> bool:
        try:
            async with asyncio.timeout(CARRY_S_MAX):
                if to not in self._peers:
                    self._peers[to] = await asyncio.to_thread(ray.get_actor, shard_name(to), self._namespace)
                arrived: bool = await self._peers[to].deliver.remote(self._shard, frame)
                return arrived
        except (ray.exceptions.RayError, TimeoutError, ValueError):
            return False


class CoordinatorActor:
    """Asks all shards, round after round. What it must find again is in the crawl's directory."""

    def __init__(self, plan: bytes, namespace: str) -> None:
        self._plan = msgspec.json.decode(plan, type=ClusterPlan)
        self._namespace = namespace
        self._clock = WallClock()
        self._file = Path(self._plan.directory) / RECORD_FILE
        # One of a crawl that was killed may end a little later: it must not write what this one has not read.
        self._lock = DirectoryLock(self._file.with_suffix(".lock"))
        if not self._lock.acquire(LOCK_S_MAX):
            raise ConfigError(f"{self._file}: another coordinator still has it")
        kept = msgspec.json.decode(self._file.read_bytes(), type=CoordinatorRecord) if self._file.exists() else None
        plan_ = self._plan
        partitions = PartitionMap.load(Path(plan_.directory)) or PartitionMap.even(plan_.shards)
        self.coordination = Coordination(
            partitions, plan_.limits, plan_.tenure_s, self._clock.now(), kept, self._save
        )  # fmt: skip
        self.coordination.balance = Balance() if plan_.balances else None
        self._shards: dict[int, Any] = {}
        self._asked: dict[int, asyncio.Task[ShardAnswer | None]] = {}
        self._going: asyncio.Task[None] | None = None

    async def standing(self) -> bytes:
        """Return the status of the crawl, and what is new. The first call, also after a restart, starts the rounds."""
        if self._going is None:
            await self._meet()
            self._going = asyncio.create_task(self._rounds())
            self._going.add_done_callback(_ended)
        failure, refused = self.coordination.failure
        return _encode(
            {
                "status": self.coordination.status(),
                "notes": self.coordination.take_notes(),
                "is_over": self.coordination.is_over,
                "end": self.coordination.kept.end,
                "failure": failure,
                "refused": refused,
            }
        )

    async def scale(self, *, shards: int) -> None:
        """Have `shards` shards hold the partitions; all of them have been started."""
        self.coordination.scale(shards)
        await self._meet()

    async def _meet(self) -> None:
        for shard in range(self.coordination.shards):
            if shard not in self._shards:
                self._shards[shard] = await asyncio.to_thread(ray.get_actor, shard_name(shard), self._namespace)

    async def stop(self, *, now: bool = False) -> None:
        """End the crawl, everything saved."""
        self.coordination.end("stopped", hurried=now)

    async def pause(self, *, paused: bool) -> None:
        """Send no more requests, or go on."""
        self.coordination.pause(paused=paused)

    async def hold(self, *, held: bool) -> None:
        """Begin no moves but those that the operator ordered, or begin them again."""
        self.coordination.hold(held=held)

    async def seeded(self) -> None:
        """Note that seeds were added."""
        self.coordination.seeded()

    async def ask(self, question: bytes, shards: list[int]) -> list[bytes]:
        """Have shards answer a verb."""
        return list(await asyncio.gather(*[self._answer(shard, question) for shard in shards]))

    async def pid(self) -> int:
        """Return the number of this process."""
        return os.getpid()

    async def _answer(self, shard: int, question: bytes) -> bytes:
        if shard not in self.coordination.seen:  # Ray keeps the call until there is a machine for the shard.
            return _encode({"ok": False, "error": f"shard {shard} has not started"})
        try:
            async with asyncio.timeout(ASK_S_MAX + CALL_S_MAX):
                answer: bytes = await self._shards[shard].ask.remote(question)
        except (ray.exceptions.RayError, TimeoutError):
            return _encode({"ok": False, "error": f"shard {shard} is restarting; try again"})
        return answer

    async def _rounds(self) -> None:
        while True:
            ends_at = self._clock.now() + self._plan.round_s
            self.coordination.took(await self._round(), self._clock.now())
            await asyncio.sleep(max(0.0, ends_at - self._clock.now()))

    async def _round(self) -> list[ShardAnswer]:
        """Ask all shards that have answered what they were asked before; wait for them, but not for ever."""
        asked = [shard for shard in self._shards if shard not in self._asked]
        for shard in asked:
            self._asked[shard] = asyncio.create_task(self._look(shard))
        if asked:
            await asyncio.wait([self._asked[shard] for shard in asked], timeout=self._plan.answer_s_max)
        answers = []
        for shard in [shard for shard, task in self._asked.items() if task.done()]:
            seen = self._asked.pop(shard).result()
            if seen is not None and shard in asked:  # Older answers are of another round.
                answers.append(seen)
        return answers

    async def _look(self, shard: int) -> ShardAnswer | None:
        try:
            answer = await self._shards[shard].look.remote(_encode(self.coordination.look(shard)))
        except ray.exceptions.RayError:
            return None
        return _decode(answer, type=ShardAnswer)

    def _save(self, kept: CoordinatorRecord) -> None:
        write_whole(self._file, msgspec.json.encode(kept))


class Engine:
    """The actors of one crawl, for the process that started it. They end with that process."""

    def __init__(self, coordinator: Any, shards: list[Any], reaper: subprocess.Popen[bytes] | None) -> None:
        """`reaper` is set for a private Ray."""
        self.coordinator = coordinator
        self.shards = shards
        self._reaper = reaper

    async def standing(self) -> dict[str, Any]:
        """Return the status of the crawl.

        Raises:
            ConfigError: the runtime environment cannot be set up.
            ConnectionError: the coordinator restarts.
            ConnectionAbortedError: Ray reports it as dead; that is final only after some time.
        """
        try:
            async with asyncio.timeout(CALL_S_MAX):
                answer = await self.coordinator.standing.remote()
        except TimeoutError as error:
            raise ConnectionError("it does not answer") from error
        except ray.exceptions.RuntimeEnvSetupError as error:
            raise ConfigError(f"cluster.runtime_env: Ray cannot set it up: {_line(error)}") from error
        except ray.exceptions.ActorDiedError as error:
            raise ConnectionAbortedError(_line(error)) from error
        except ray.exceptions.RayError as error:
            raise ConnectionError(_line(error)) from error
        found: dict[str, Any] = _decode(answer)
        return found

    def grow(self, plan: ClusterPlan, shards: int, options: ClusterOptions) -> None:
        """Start shards until there are `shards`; they wait for the coordinator."""
        namespace = ray.get_runtime_context().namespace
        for shard in range(len(self.shards), shards):
            self.shards.append(_shard_actor(encode(plan), shard, namespace, "SPREAD", options))

    async def call(self, name: str, **arguments: object) -> None:
        """Call a method of the coordinator, such as `stop`. Raises ConnectionError as `standing`."""
        try:
            async with asyncio.timeout(CALL_S_MAX):
                await getattr(self.coordinator, name).remote(**arguments)
        except TimeoutError as error:
            raise ConnectionError("it does not answer") from error
        except ray.exceptions.RayError as error:
            raise ConnectionError(_line(error)) from error

    async def ask(self, question: Mapping[str, object], shards: list[int]) -> list[dict[str, object]]:
        """Have shards answer a verb. Raises ConnectionError as `standing`."""
        try:
            answers = await self.coordinator.ask.remote(_encode(dict(question)), shards)
        except ray.exceptions.RayError as error:
            raise ConnectionError(_line(error)) from error
        return [_decode(answer, type=dict[str, object]) for answer in answers]

    def close(self) -> None:
        """End all actors; a private Ray ends too, without a trace."""
        for actor in (self.coordinator, *self.shards):
            with suppress(Exception):
                ray.kill(actor)
        _leave(self._reaper)


def start(plan: ClusterPlan, options: ClusterOptions) -> Engine:
    """Start the actors: on the cluster at `options.address`, or on a private Ray, which takes about 4 s and 600 MB.

    Raises:
        ConfigError: there is no such cluster, it is of another version, or Ray refuses the options.
        CrawlFailedError: a private Ray does not start.
    """
    namespace = f"gossamer-{os.getpid()}-{secrets.token_hex(4)}"
    reaper = None if options.address else _own(options, namespace)
    if options.address:
        _connect(options, namespace)
    try:
        return Engine(*_actors(encode(plan), plan.shards, namespace, options), reaper)
    except ray.exceptions.RayError as error:
        _leave(reaper)
        raise ConfigError(
            f"Ray starts none of the crawl's processes ({_line(error)}); is every machine's RAY_AUTH_MODE the same, "
            f"here {os.environ.get('RAY_AUTH_MODE')}?"
        ) from error


def _actors(plan: bytes, shards: int, namespace: str, options: ClusterOptions) -> tuple[Any, list[Any]]:
    """Start the coordinator, on this machine, and the shards, where Ray has room for them, now or later."""
    here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
    keepers = [
        _shard_actor(plan, shard, namespace, place, options) for shard, place in enumerate(_places(shards, options))
    ]
    coordinating: Any = ray.remote(CoordinatorActor)
    coordinator = coordinating.options(name="coordinator", num_cpus=0, scheduling_strategy=here, **COMMON).remote(
        plan, namespace
    )
    return coordinator, keepers


def _shard_actor(plan: bytes, shard: int, namespace: str, place: Any, options: ClusterOptions) -> Any:
    keeping: Any = ray.remote(ShardActor)
    needs = {"num_cpus": options.cpus, "memory": options.memory_bytes or None, "resources": options.resources}
    return keeping.options(name=shard_name(shard), scheduling_strategy=place, **needs, **COMMON).remote(
        plan, shard, namespace
    )


def _places(shards: int, options: ClusterOptions) -> list[Any]:
    """Return how Ray is to place each shard. A placement group is reserved as a whole, and ends with this program."""
    if options.placement == "spread":
        return ["SPREAD"] * shards
    group = placement_group([options.reserved] * shards, strategy=options.placement.upper())
    return [PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=shard) for shard in range(shards)]


def shard_name(shard: int) -> str:
    """Return the name of a shard's actor in the crawl's namespace."""
    return f"shard-{shard}"


def _own(options: ClusterOptions, namespace: str) -> subprocess.Popen[bytes]:
    """Start a private Ray; again where it gave up, which it does after 30 s, on a busy machine too."""
    _sweep()
    ray_constants.ENABLE_RAY_CLUSTER = False  # The only way to have every part of it listen on loopback alone.
    for left in reversed(range(STARTS_MAX)):
        folder = Path(tempfile.mkdtemp(prefix=f"{FOLDER}{os.getpid()}-"))
        reaper = reaper_of(folder)
        try:
            _begin(options, namespace, folder)
        except ValueError as error:
            _leave(reaper)
            raise ConfigError(f"cluster: Ray does not start with these settings ({_line(error)})") from error
        except Exception as error:  # Of no class of its own.
            _leave(reaper)
            if not left:
                raise CrawlFailedError(f"Ray does not start on this machine ({_line(error)})") from error
        else:
            return reaper
    raise AssertionError("the last start returns or raises")


def _leave(reaper: subprocess.Popen[bytes] | None) -> None:
    """Leave the cluster, or end a private Ray, which has a reaper."""
    with suppress(Exception):
        ray.shutdown()
    if reaper is not None:
        assert reaper.stdin is not None
        reaper.stdin.close()
        reaper.wait()


def _begin(options: ClusterOptions, namespace: str, folder: Path) -> None:
    ray.init(
        address="local",  # Also where RAY_ADDRESS names a cluster.
        namespace=namespace,
        runtime_env=_runtime_env(options),
        num_cpus=max(2, math.ceil(options.cpus * options.workers)),
        resources={name: count * options.workers for name, count in options.resources.items()},
        include_dashboard=False,
        object_store_memory=options.object_store_bytes,
        log_to_driver=False,
        logging_level=logging.CRITICAL,
        _temp_dir=str(folder),
    )


def _connect(options: ClusterOptions, namespace: str) -> None:
    address, environment = options.address, _runtime_env(options)
    if address.startswith(LOOPBACK):
        ray_constants.ENABLE_RAY_CLUSTER = False  # It would look for that cluster at this machine's other address.
    try:
        host, _, port = address.rpartition(":")
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_S_MAX).close()  # Ray itself takes minutes.
        ray.init(
            address=address,
            namespace=namespace,
            runtime_env=environment,
            log_to_driver=False,
            logging_level=logging.CRITICAL,
        )
    except (ConnectionError, OSError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
        raise ConfigError(
            f"--cluster {address}: no Ray cluster there that this machine is part of ({_line(error)}); "
            f"`ray start --address={address}` joins one, `ray start --head` begins one"
        ) from error


def _runtime_env(options: ClusterOptions) -> RuntimeEnv | None:
    """Return what the file of `cluster.runtime_env` holds. Its relative directories begin where the file is."""
    if not options.runtime_env:
        return None
    file = Path(options.runtime_env)
    try:
        held = msgspec.yaml.decode(file.read_bytes(), type=dict[str, Any])
        for key in ("working_dir", "py_modules"):
            if key in held:
                held[key] = _from(file.parent, held[key])
        return RuntimeEnv(**held)
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise ConfigError(f"cluster.runtime_env: {file}: {_line(error)}") from error


def _from(folder: Path, place: Any) -> Any:
    """Return a local path as absolute, and a URI as it is."""
    if isinstance(place, list):
        return [_from(folder, one) for one in place]
    return place if "://" in place else str(folder / place)


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]


def _sweep() -> None:
    """End and remove what a Ray has left whose starter was killed, and its reaper too."""
    for folder in Path(tempfile.gettempdir()).glob(f"{FOLDER}*"):
        number = folder.name.removeprefix(FOLDER).partition("-")[0]
        if number.isdigit() and not Path(f"/proc/{number}").exists():
            end(str(folder), {})


def _ended(task: asyncio.Task[None]) -> None:
    """End this process when what it is there for failed: Ray starts another."""
    if not task.cancelled() and (error := task.exception()) is not None:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        os._exit(1)


def _knock(address: str) -> int:
    """Speak to a cluster as this process is set up to; return `ASKED` when it wants a token."""
    try:
        host, _, port = address.rpartition(":")
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_S_MAX).close()
        GcsClient(address=address)
    except ray.exceptions.AuthenticationError:
        return ASKED
    except (OSError, ValueError, ray.exceptions.RayError):
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(_knock(sys.argv[1]))
