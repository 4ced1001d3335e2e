"""Ray: joins a cluster, starts the actors of the shards there, and of the coordinator on this machine, and calls them.
Only this module, `actors` and `tasks` use Ray.
"""

import asyncio
import logging
import os
import secrets
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from threading import Thread
from typing import Any

import msgspec
import ray
import ray.exceptions
from ray._private import ray_constants, worker
from ray._raylet import GcsClient  # type: ignore[attr-defined]
from ray.runtime_env import RuntimeEnv
from ray.util.placement_group import placement_group
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy, PlacementGroupSchedulingStrategy

from gossamer.cluster.actors import CALL_S_MAX, CoordinatorActor, ShardActor, shard_name
from gossamer.cluster.coordinator import ASK_S_MAX, decoded, encoded
from gossamer.cluster.job import ASKED, ClusterPlan, encode, no_cluster, reach, refused_token
from gossamer.cluster.options import ClusterOptions
from gossamer.model.errors import ConfigError
from gossamer.world.clock import pause, steady_s

COMMON: Any = {"max_restarts": -1, "max_task_retries": 0}
"""Options of all actors. Ray repeats no call: the caller repeats queries, the sender frames."""
NAME_TRIES_MAX = 100
MACHINES_LOOK_S = 0.25
"""Interval of looks for machines that are about to join."""
LOOPBACK = ("127.", "localhost:", "[::1]:")


class RayEngine:
    """The actors of a crawl, for the process that started it. They end with that process."""

    def __init__(self, coordinator: Any, shards: list[Any], options: ClusterOptions) -> None:
        self.coordinator = coordinator
        self.shards = shards
        self._options = options

    async def standing(self) -> dict[str, Any]:
        """Return the status of the crawl. Raises as `_calling`."""
        async with _calling(CALL_S_MAX):
            answer = await self.coordinator.standing.remote()
        found: dict[str, Any] = decoded(answer)
        return found

    def grow(self, plan: ClusterPlan, machines: Iterable[str]) -> None:
        """Start one more shard on each of these machines, see `move`; they wait for the coordinator."""
        for machine in machines:
            self.shards.append(self._start(plan, len(self.shards), machine, self._options))

    async def move(self, plan: ClusterPlan, shard: int, machine: str, options: ClusterOptions) -> None:
        """Start an ended shard again: on a machine while it is there; empty: on any. Raises ConnectionError."""
        ray.kill(self.shards[shard])
        for _ in range(NAME_TRIES_MAX):
            try:
                self.shards[shard] = await asyncio.to_thread(self._start, plan, shard, machine, options)
            except ValueError:  # Ray frees the name of a killed actor a little later.
                await asyncio.sleep(0.1)
            else:
                return await self.call("arrive", shard=shard)
        raise ConnectionError(f"Ray does not free the name of shard {shard}")

    def _start(self, plan: ClusterPlan, shard: int, machine: str, options: ClusterOptions) -> Any:
        place = NodeAffinitySchedulingStrategy(machine, soft=True) if machine else "SPREAD"
        return _shard_actor(encode(plan), shard, ray.get_runtime_context().namespace, place, options)

    async def call(self, name: str, **arguments: object) -> None:
        """Call a method of the coordination, such as `pause`. Raises as `_calling`."""
        async with _calling(CALL_S_MAX):
            await self.coordinator.order.remote(name, arguments)

    async def ask(self, question: Mapping[str, object], shards: list[int]) -> list[dict[str, object]]:
        """Return the answers of shards to a verb. Raises as `_calling`."""
        async with _calling(ASK_S_MAX + 2 * CALL_S_MAX):
            answers = await self.coordinator.ask.remote(encoded(dict(question)), shards)
        return [decoded(answer, type=dict[str, object]) for answer in answers]

    def close(self) -> None:
        """End all actors, and leave the cluster."""
        for actor in (self.coordinator, *self.shards):
            with suppress(Exception):
                ray.kill(actor)
        with suppress(Exception):
            ray.shutdown()

    def abandon(self) -> None:
        """Leave a cluster whose head is gone, which would keep `close` waiting for it."""
        Thread(target=self.close, daemon=True).start()


@asynccontextmanager
async def _calling(limit_s: float) -> AsyncIterator[None]:
    """Bound a call of the coordinator.

    Raises:
        ConfigError: the runtime environment cannot be set up.
        ConnectionError: the coordinator is restarting.
        ConnectionAbortedError: Ray reports the coordinator as dead, which is final only after some time.
    """
    try:
        async with asyncio.timeout(limit_s):
            yield
    except TimeoutError as error:
        raise ConnectionError("it does not answer") from error
    except ray.exceptions.RuntimeEnvSetupError as error:
        raise ConfigError(f"cluster.runtime_env: Ray cannot set it up: {_line(error)}") from error
    except ray.exceptions.ActorDiedError as error:
        raise ConnectionAbortedError(_line(error)) from error
    except ray.exceptions.RayError as error:
        raise ConnectionError(_line(error)) from error


def start(plan: ClusterPlan, options: ClusterOptions, is_stopped: Callable[[], object]) -> RayEngine | None:
    """Start the actors on the cluster at `options.address`; None: the crawl was stopped while its machines join. Raises
    ConfigError: there is no such cluster, it is of another version, or Ray refuses the options.
    """
    namespace = f"gossamer-{os.getpid()}-{secrets.token_hex(4)}"
    connect(options, namespace)
    try:
        coordinator = _coordinator_actor(plan, namespace)
        engine = RayEngine(coordinator, _start_shards(plan, namespace, options, is_stopped), options)
    except ray.exceptions.RayError as error:
        with suppress(Exception):
            ray.shutdown()
        raise ConfigError(
            f"Ray starts none of the crawl's processes ({_line(error)}); is every machine's RAY_AUTH_MODE the same, "
            f"here {os.environ.get('RAY_AUTH_MODE')}?"
        ) from error
    if engine.shards:
        return engine
    engine.close()
    return None


def _coordinator_actor(plan: ClusterPlan, namespace: str) -> Any:
    """Start the coordinator on this machine."""
    here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
    coordinating: Any = ray.remote(CoordinatorActor)
    return coordinating.options(name="coordinator", num_cpus=0, scheduling_strategy=here, **COMMON).remote(
        encode(plan), namespace
    )


def _start_shards(
    plan: ClusterPlan, namespace: str, options: ClusterOptions, is_stopped: Callable[[], object]
) -> list[Any]:
    """Start the shards where Ray has resources for them, now or later; none: the crawl was stopped meanwhile.

    A shard begins on the machine that has its state on its disk. After the loss of the head that machine is about to
    join again. To wait for it costs nothing: until a lease ends no other machine can take its shards.
    """
    text = encode(plan)
    former = plan.former if options.placement == "spread" else {}
    places = dict(enumerate(_places(plan, options)))
    started: dict[int, Any] = {}
    ends_at = steady_s() + (plan.tenure_s if plan.is_abrupt else 0.0)
    while True:
        waits = steady_s() < ends_at
        nodes = ray.nodes()  # type: ignore[no-untyped-call]
        there = {str(node["NodeManagerAddress"]): str(node["NodeID"]) for node in nodes if node["Alive"]}
        for shard, place in list(places.items()):
            if (machine := there.get(former.get(shard, ""))) is not None:
                place = NodeAffinitySchedulingStrategy(machine, soft=True)
            elif shard in former and waits:
                continue
            del places[shard]
            started[shard] = _shard_actor(text, shard, namespace, place, options)
        if not places:
            return [started[shard] for shard in sorted(started)]
        if is_stopped():
            return []
        pause(MACHINES_LOOK_S)


def _shard_actor(plan: bytes, shard: int, namespace: str, place: Any, options: ClusterOptions) -> Any:
    keeping: Any = ray.remote(ShardActor)
    needs = {"num_cpus": options.cpus, "memory": options.memory_bytes or None, "resources": options.resources}
    actor = keeping.options(name=shard_name(shard), scheduling_strategy=place, **needs, **COMMON).remote(
        plan, shard, namespace
    )
    actor.begin.remote()  # While the coordinator starts.
    return actor


def _places(plan: ClusterPlan, options: ClusterOptions) -> list[Any]:
    """Return Ray's placement of each shard. A placement group is reserved as a whole, and ends with this program."""
    if options.placement == "spread":
        return ["SPREAD"] * plan.shards
    group = placement_group([options.ray_resources] * plan.shards, strategy=options.placement.upper())
    return [PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=shard) for shard in range(plan.shards)]


def connect(options: ClusterOptions, namespace: str) -> None:
    """Join the cluster at `options.address`. Raises ConfigError: there is none, or an option is no good."""
    worker._worker_logs_enabled = False  # noqa: SLF001 - it prints errors of Ray's processes here, with their stacks
    address = options.address
    env = _runtime_env(options)
    if address.startswith(LOOPBACK):
        ray_constants.ENABLE_RAY_CLUSTER = False  # It would look for that cluster at this machine's other address.
    if _knock(address) == ASKED:  # Ray would try for 20 s, and then say that there is no cluster.
        raise refused_token(address)
    try:
        machines = GcsClient(address=address).get_all_node_info().values()
        if not any(Path(one.raylet_socket_name).exists() for one in machines):  # Ray would end this process.
            raise OSError("its sockets are not here; a service with PrivateTmp needs `ray start --temp-dir`")
        ray.init(
            address=address, namespace=namespace, runtime_env=env, log_to_driver=False, logging_level=logging.CRITICAL
        )
    except (ConnectionError, OSError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
        raise no_cluster(address, error) from error


def _runtime_env(options: ClusterOptions) -> RuntimeEnv | None:
    """Return the content of the file of `cluster.runtime_env`. Relative directories in it are relative to the file."""
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


def _knock(address: str) -> int:
    """Connect to a cluster with this process's settings; return `ASKED` if it requires a token."""
    try:
        reach(address)
        GcsClient(address=address)
    except ray.exceptions.AuthenticationError:
        return ASKED
    except (OSError, ValueError, ray.exceptions.RayError):
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(_knock(sys.argv[1]))
