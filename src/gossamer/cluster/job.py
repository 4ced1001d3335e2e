"""Job: the description of a crawl that its engine and shard processes receive."""

import os
import secrets
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec

from gossamer.cluster.coordination import Limits
from gossamer.model.decodable import decodable
from gossamer.model.errors import NoClusterError
from gossamer.model.product import __version__
from gossamer.world.files import keep_name

CONNECT_S_MAX = 5.0
KNOCK_S_MAX = 20.0
ASKED = 3
"""Exit status of a probe whose cluster requires a token."""
HERE = "here"
"""Name of the machine in a crawl on one machine."""


def reach(address: str) -> None:
    """Connect to the head of a cluster, since Ray itself tries for minutes. Raises OSError or ValueError."""
    host, _, port = address.rpartition(":")
    socket.create_connection((host.strip("[]"), int(port)), CONNECT_S_MAX).close()


def no_cluster(address: str, error: Exception) -> NoClusterError:
    """Return the line for an address without a cluster that this machine has joined."""
    says = " ".join(str(error).split())[:200]
    return NoClusterError(
        f"--cluster {address}: no Ray cluster there that this machine is part of ({says}); "
        f"`ray start --address={address}` joins one, `ray start --head` begins one"
    )


def refused_token(address: str) -> NoClusterError:
    """Return the line for a cluster that requires another token than this machine has."""
    return NoClusterError(
        f"--cluster {address}: the Ray cluster there does not accept this machine's token; copy the head's "
        "~/.ray/auth_token here, and leave out RAY_AUTH_MODE or set it to token"
    )


def name_machine(work: str, address: str) -> str:
    """Return the name of the directory in `work` for the machine with an address and this disk. Ray's own name of a
    machine changes with each start of its Ray. Another disk has another name, since its shards may be older.
    """
    try:
        return keep_name(Path(work) / address, f"{address}-{secrets.token_hex(4)}")
    except OSError:
        return address  # A shard's process cannot work there either, and names the error.


def address_in(name: str) -> str:
    """Return the address of the machine with a name."""
    return name.rpartition("-")[0]


def address_of_job(environment: Mapping[str, str]) -> str:
    """Return the address of the cluster that a Ray job runs on, from RAY_ADDRESS of its driver. Empty outside a job,
    where that variable may be the address of a dashboard for Ray's commands.
    """
    return environment.get("RAY_ADDRESS", "") if "RAY_JOB_CONFIG_JSON_ENV_VAR" in environment else ""


def environment_of_a_cluster(environment: Mapping[str, str], address: str) -> dict[str, str]:
    """Return the environment to set before the import of Ray, to join a cluster. Ray must know by then whether the
    cluster requires a token: a client with a token rejects a cluster that has none.
    """
    # Ray would end this process a while after the head is lost; the crawl notices by itself, and continues.
    quiet = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_gcs_rpc_server_reconnect_timeout_s": "3600"}
    if "RAY_AUTH_MODE" in environment:
        return quiet
    return {**quiet, "RAY_AUTH_MODE": "token" if asks_for_token(environment, address) else "disabled"}


def asks_for_token(environment: Mapping[str, str], address: str) -> bool:
    """Connect without a token; return whether the cluster requires one. Takes a process and half a second, since Ray
    reads its authentication mode once per process.
    """
    knocking = {**environment, "RAY_AUTH_MODE": "disabled", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-P", "-m", "gossamer.cluster.ray", address]
    try:
        done = subprocess.run(  # noqa: S603 - ourselves
            command, env=knocking, stdin=subprocess.DEVNULL, capture_output=True, timeout=KNOCK_S_MAX, check=False
        )
    except subprocess.TimeoutExpired:
        return False  # The connection that follows reports that the cluster does not answer.
    return done.returncode == ASKED


@decodable
class ClusterPlan(msgspec.Struct, frozen=True, kw_only=True):
    """A crawl, for its engine."""

    directory: str
    """The crawl's directory, absolute."""
    shards: int
    partitions: bytes
    """Content of the file of the partition map at the start, which other machines may not be able to read."""
    config: str
    """The effective configuration, as TOML."""
    work: str = ""
    """Where each machine keeps its shards' state; empty: in the crawl's directory, which all machines share."""
    node: str = ""
    """Permanent name of the machine, in a crawl on one machine; empty: the engine names machines."""
    command: tuple[str, ...] = ()
    """Command of a shard's process, without the interpreter."""
    limits: Limits = Limits()
    tenure_s: float
    round_s: float
    answer_s_max: float
    process_s_max: float
    balances: bool = False
    """Whether partitions move automatically from shards that are behind to those that are free."""
    needs: dict[str, float] = {}
    """Resources that Ray reserves for a shard."""
    moves: bool = False
    """Whether shards move automatically to machines that have fewer."""
    machine_shards_max: int = 1_024
    """Shards that a machine may get."""
    version: str = __version__
    """Version of Gossamer that runs the crawl, which must be that of its machines too."""
    former: dict[int, str] = {}
    """By shard, the address of the machine whose disk has its state, from an earlier run."""
    is_abrupt: bool = False
    """Whether that run did not end as instructed: its machines may be about to join again."""

    def directory_on(self, node: str) -> str:
        """Return the directory in which the shards of a machine work."""
        return str(Path(self.work) / node) if self.work else self.directory


@decodable
class ShardJob(msgspec.Struct, frozen=True, kw_only=True):
    """A shard, for its process, which reads this as a line of JSON from its standard input."""

    plan: ClusterPlan
    shard: int
    node: str
    """The machine."""
    line: int
    """File descriptor of its end of the line to its parent."""
    parent: int

    @property
    def directory(self) -> Path:
        """Where it works."""
        return Path(self.plan.directory_on(self.node))


def encode(value: ClusterPlan | ShardJob) -> bytes:
    """Return a value as one line of JSON."""
    return msgspec.json.encode(value) + b"\n"
