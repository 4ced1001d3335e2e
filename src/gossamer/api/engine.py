"""Engine: starts the engine of a crawl of several shards, calls it, and reports shards without a machine."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec
from msgspec.structs import replace

from gossamer.cluster.coordination import Limits
from gossamer.cluster.job import HERE, ClusterPlan, environment_of_a_cluster, no_cluster, reach
from gossamer.cluster.local import LocalEngine
from gossamer.cluster.options import ClusterOptions, check_head
from gossamer.cluster.partitions import PartitionMap
from gossamer.config import Config, effective_toml
from gossamer.engine.options import LimitsOptions
from gossamer.model.errors import ConfigError
from gossamer.model.verbs import ConflictError, RefusedError, VerbRequest
from gossamer.world.allocators import SYSTEM_ARENAS

if TYPE_CHECKING:
    from gossamer.cluster.ray import RayEngine

    Engine: TypeAlias = LocalEngine | RayEngine
    """Runs the shards: processes of this machine, or actors of a Ray cluster."""

MEMBER = ("-c", f"{SYSTEM_ARENAS}from gossamer.api.member import main; main()")


class EngineCalls:
    """Calls to the engine of a running crawl."""

    def __init__(self) -> None:
        self.engine: Engine | None = None

    def require(self) -> Engine:
        """Return the engine. Raises ConflictError: it has ended."""
        if self.engine is None:
            raise ConflictError("the crawl is ending")
        return self.engine

    async def ask(self, verb: str, request: VerbRequest, shards: list[int], *, some: bool = False) -> list[object]:
        """Return the answers of shards. Raises RefusedError when one refuses; with `some`, when all do."""
        engine = self.require()
        try:
            answers = await engine.ask({"verb": verb, **msgspec.to_builtins(request)}, shards)
        except ConnectionError as error:
            raise ConflictError("the coordinator is restarting; try again") from error
        refusals = [str(answer.get("error")) for answer in answers if not answer.get("ok")]
        if refusals and (not some or len(refusals) == len(answers)):
            raise RefusedError(refusals[0])
        return [answer.get("result") for answer in answers if answer.get("ok")]

    async def call(self, name: str, **arguments: object) -> None:
        """Call a method of the coordinator. Raises ConflictError: it does not answer."""
        engine = self.require()
        try:
            await engine.call(name, **arguments)
        except ConnectionError as error:
            raise ConflictError("the coordinator is restarting; try again") from error


def plan_of(
    config: Config, cluster: ClusterOptions, directory: Path, partitions: PartitionMap, *, balances: bool
) -> ClusterPlan:
    """Return the plan by which the engine runs a crawl; `cluster` are the options with the cluster that was found."""
    work = ""
    if config.state.checkpoint_uri:
        work = cluster.work_directory or str(directory.resolve() / "machines")
    moves = cluster.rebalance and cluster.placement == "spread" and bool(cluster.address)
    return ClusterPlan(
        directory=str(directory.resolve()),
        shards=cluster.workers,
        partitions=partitions.encode(),
        config=effective_toml(config),
        work=work,
        node="" if cluster.address else HERE,
        command=MEMBER,
        limits=limits_of(config),
        tenure_s=cluster.tenure_s,
        round_s=cluster.round_s,
        answer_s_max=cluster.answer_s_max,
        process_s_max=config.crawl.process_s_max,
        balances=balances,
        needs=cluster.ray_resources,
        moves=moves,
        machine_shards_max=1 if cluster.placement == "strict_spread" else cluster.workers,
    )


def limits_of(config: Config) -> Limits:
    """Return the limits of the whole crawl, which the coordinator enforces."""
    limits = config.limits
    asks_seeds = bool(config.frontier.more_seeds_command)
    return Limits(limits.max_pages, limits.max_time_s, limits.max_bytes, config.frontier.hosts_min, asks_seeds)


def without_limits(config: Config) -> Config:
    """Return the configuration of each shard: the coordinator sends its quota, and counts the hosts of all."""
    frontier = replace(config.frontier, hosts_min=0, more_seeds_command=())
    return replace(config, limits=LimitsOptions(), frontier=frontier)


def start(plan: ClusterPlan, options: ClusterOptions, is_stopped: Callable[[], object]) -> Engine | None:
    """Start the engine: on the cluster at `options.address`, or on this machine. Ray is imported only here. None: the
    crawl was stopped meanwhile. Raises ConfigError: there is no such cluster.
    """
    if not options.address:
        return LocalEngine(plan)
    prepare_to_join(options.address)
    from gossamer.cluster import ray  # noqa: PLC0415

    return ray.start(plan, options, is_stopped)


def prepare_to_join(address: str) -> None:
    """Set what Ray reads from the environment when it is imported. Raises ConfigError: no cluster is there."""
    try:
        check_head(address)
    except ValueError as error:
        raise ConfigError(f"--cluster {address}: {error}") from error
    try:
        reach(address)  # Before Ray reads whether the cluster requires a token, which it does once.
    except (OSError, ValueError) as error:
        raise no_cluster(address, error) from error
    os.environ.update(environment_of_a_cluster(os.environ, address))


def hear_signals_as_before() -> None:
    """Take SIGTERM back from Ray, which prints a stack for it before it passes it on."""
    with suppress(ValueError):  # Those of another thread are not ours.
        if (handler := signal.getsignal(signal.SIGTERM)) is not None:
            signal.signal(signal.SIGTERM, handler)


def no_machine(status: Mapping[str, Any]) -> list[int]:
    """Return the shards that never answered from a machine."""
    return [number for number, shard in enumerate(status["shards"]) if not shard.get("node")]


def have_stopped(status: Mapping[str, Any]) -> bool:
    """Return whether all shards that Ray has placed have ended."""
    return all(shard["state"] in ("stopped", "finished") for shard in status["shards"] if shard.get("node"))


def no_room(shards: list[int], options: ClusterOptions) -> str:
    """Return, as one line, for which shards Ray has no machine, and what each needs."""
    what = ", ".join(f"{name} {count:g}" for name, count in options.ray_resources.items() if count)
    named = "shards " + ", ".join(map(str, shards)) if len(shards) > 1 else f"shard {shards[0]}"
    return (
        f"Ray has no machine for {named} (cluster.placement = {options.placement}; each needs {what}); add machines, "
        "or lower cluster.workers, cpus, memory_bytes or resources"
    )
