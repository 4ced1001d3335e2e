"""Options of a crawl of several shards."""

from typing import Annotated, Any, Final, Literal

from gossamer.options import Key, Section
from gossamer.world.process import processors, usable_bytes


def check_head(address: str) -> str:
    """Return the address of the head of a cluster, or an empty one. Raises ValueError: it is neither."""
    host, _, port = address.rpartition(":")
    if address and ("/" in address or not (host and port.isdecimal())):
        raise ValueError("expected HOST:PORT of the head of a Ray cluster, such as 10.0.0.1:6379")
    return address


SHARD_BYTES: Final = 110_000_000
"""Memory of a shard with small pages and the messages of the others, measured with 2 to 8 shards."""


def read_workers(given: Any) -> Any:
    """Return a number of shards; `auto`: one for each processor, as far as the memory suffices. Raises ValueError."""
    if isinstance(given, str) and given.isalpha() and given != "auto":
        raise ValueError("expected a whole number, or auto")
    return max(1, min(processors(), usable_bytes() // SHARD_BYTES)) if given == "auto" else given


class ClusterOptions(Section, frozen=True):
    """How many shards a crawl has, and where they run: on this machine, or on a Ray cluster."""

    workers: Annotated[
        int,
        Key(
            "Number of shards, each a process; `auto`: one for each processor of this machine, if there are 110 MB "
            "of memory for each. `gossamer scale` changes it later.",
            ge=1,
            le=1024,
            basic=True,
            read=read_workers,
        ),
    ] = 1
    address: Annotated[
        str,
        Key(
            "The Ray cluster to run on, as HOST:PORT of its head; it needs gossamer[cluster]. Empty: in a Ray job that "
            "job's cluster, else this machine, without Ray.",
            basic=True,
            check=check_head,
        ),
    ] = ""
    runtime_env: Annotated[
        str,
        Key(
            "A YAML or JSON file with the runtime environment of the shards (working_dir, pip, env_vars), as `ray job "
            "submit --runtime-env` takes it. In a Ray job its entries are added to those of the job.",
            path="read",
        ),
    ] = ""
    placement: Annotated[
        Literal["spread", "strict_spread", "pack"],
        Key(
            "Where Ray places shards: spread over the machines as far as possible, at most one on each "
            "(strict_spread), or on as few as possible (pack). The last two reserve the places of all shards together."
        ),
    ] = "spread"
    cpus: Annotated[
        float,
        Key(
            "Processors that Ray reserves for each shard. With next to none, the shards of a lost machine always find "
            "room on another one; with 1, an autoscaler adds a machine where processors are missing.",
            gt=0,
        ),
    ] = 0.001
    memory_bytes: Annotated[int, Key("Memory that Ray reserves for each shard; 0: none.", ge=0)] = 0
    resources: Annotated[
        dict[str, float],
        Key("Resources of Ray that each shard needs, such as `{crawler = 1}`; only such machines get shards."),
    ] = {}
    work_directory: Annotated[
        str,
        Key(
            "On each machine, where its shards keep what is not in a checkpoint yet; empty: the crawl's own "
            "directory. Only with state.checkpoint_uri; without it all machines must share the crawl's directory."
        ),
    ] = ""
    round_s: Annotated[float, Key("Between two requests for the status of all shards, in seconds.", gt=0, le=60)] = 0.5
    rebalance: Annotated[
        bool,
        Key(
            "While a shard has more hosts ready than it can request, or makes twice the requests of another one that "
            "could make more, move partitions there (not where `gossamer scale` stops a running crawl). With "
            "`placement` spread, also move shards to machines that join or come back."
        ),
    ] = True
    answer_s_max: Annotated[
        float, Key("How long a round waits for a shard, in seconds; the others are never kept waiting.", gt=0)
    ] = 5.0
    tenure_s: Annotated[
        float,
        Key(
            "Seconds without contact to the coordinator after which a shard ends itself; its replacement on another "
            "machine starts no sooner. Must be longer than a restart of the coordinator.",
            gt=0,
            le=86_400,
        ),
    ] = 20.0
    start_s_max: Annotated[
        float, Key("How long Ray may take to place all shards, in seconds; head_s_max for an interrupted crawl.", gt=0)
    ] = 180.0
    head_s_max: Annotated[
        float,
        Key(
            "How long a crawl that is resumed, or whose cluster lost its head, waits for the head, and after it for "
            "machines, to come back, in seconds.",
            ge=0,
        ),
    ] = 86_400.0
    gather: Annotated[
        bool, Key("At its end, copy results into the crawl's directory, for its readers. Needs state.checkpoint_uri.")
    ] = True
    arrived_bytes_max: Annotated[
        int, Key("Links that came from other shards and wait to be taken in, per shard", ge=1 << 20)
    ] = 8 << 20
    known_urls_max: Annotated[
        int, Key("URLs of other shards that are remembered as sent, so that they are sent once", ge=0)
    ] = 1 << 18
    resend_s: Annotated[float, Key("A batch without confirmation is sent again after this long", gt=0, le=3_600)] = 5.0
    address_term_s: Annotated[
        float,
        Key("How long a shard may use an address, or split site's token, without word of its owner", gt=0, le=3_600),
    ] = 15.0
    address_turn_s: Annotated[
        float, Key("How long a shard keeps an address, or split site's token, that others wait for", gt=0, le=3_600)
    ] = 2.0

    @property
    def ray_resources(self) -> dict[str, float]:
        """Resources that Ray reserves for each shard, by Ray's names."""
        memory = {"memory": self.memory_bytes} if self.memory_bytes else {}
        return {"CPU": self.cpus, **memory, **self.resources}
