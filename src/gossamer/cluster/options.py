"""Options of a crawl of several shards."""

from typing import Literal

from pydantic import Field

from gossamer.model.options import BASIC, Section


class ClusterOptions(Section):
    """How many shards a crawl has, and where they run. One runs without any engine, more run on Ray."""

    workers: int = Field(
        1,
        ge=1,
        le=1024,
        description="Shards of the crawl, each a process; more than one run on Ray and need gossamer[cluster]. "
        "`gossamer scale` changes it later.",
        json_schema_extra=BASIC,
    )
    address: str = Field(
        "",
        description="The Ray cluster to run on, as HOST:PORT of its head; empty: in a Ray job that job's cluster, "
        "else a private Ray on this machine.",
        json_schema_extra=BASIC,
    )
    runtime_env: str = Field(
        "",
        description="A YAML or JSON file with the runtime environment of the shards (working_dir, pip, env_vars), as "
        "`ray job submit --runtime-env` takes it. In a Ray job its entries are added to those of the job.",
    )
    placement: Literal["spread", "strict_spread", "pack"] = Field(
        "spread",
        description="Where Ray places shards: spread over the machines as far as possible, at most one on each "
        "(strict_spread), or on as few as possible (pack). The last two reserve the places of all shards together.",
    )
    cpus: float = Field(
        0.001,
        gt=0,
        description="Processors that Ray reserves for each shard. With next to none, the shards of a lost machine "
        "always find room on another one; with 1, an autoscaler adds a machine where processors are missing.",
    )
    memory_bytes: int = Field(0, ge=0, description="Memory that Ray reserves for each shard; 0: none.")
    resources: dict[str, float] = Field(
        default_factory=dict,
        description="Resources of Ray that each shard needs, such as `{crawler = 1}`: only machines that offer them "
        "get shards.",
    )
    work_directory: str = Field(
        "",
        description="On each machine, where its shards keep what is not in a checkpoint yet; empty: the crawl's own "
        "directory. Only with state.checkpoint_uri; without it all machines must share the crawl's directory.",
    )
    round_s: float = Field(
        0.5, gt=0, le=60, description="Between two requests for the status of all shards, in seconds."
    )
    rebalance: bool = Field(
        True,
        description="While a shard has more hosts ready than it can request and another one could request more, move "
        "partitions there. Not where `gossamer scale` stops a running crawl.",
    )
    answer_s_max: float = Field(
        5.0, gt=0, description="How long a round waits for a shard, in seconds; the others are never kept waiting."
    )
    tenure_s: float = Field(
        20.0,
        gt=0,
        description="Seconds without contact to the coordinator after which a shard ends itself; its successor on "
        "another machine starts no sooner. Longer than a restart of the coordinator.",
    )
    start_s_max: float = Field(
        180.0, gt=0, description="How long Ray may take to place all shards, in seconds, before the crawl gives up."
    )
    object_store_bytes: int = Field(
        80 << 20, ge=80 << 20, description="Shared memory of a Ray of this crawl's own; hardly any of it is used."
    )
    gather: bool = Field(
        True,
        description="Bring what shards left elsewhere into the crawl's directory at its end, so that report, search "
        "and export find it. Only with state.checkpoint_uri.",
    )
    arrived_bytes_max: int = Field(
        8 << 20, ge=1 << 20, description="Links that came from other shards and wait to be taken in, per shard"
    )
    known_urls_max: int = Field(
        1 << 18, ge=0, description="URLs of other shards that are remembered as sent, so that they are sent once"
    )
    resend_s: float = Field(5.0, gt=0, description="A batch without confirmation is sent again after this long")
    address_term_s: float = Field(
        15.0,
        gt=0,
        description="How long a shard may use an address, or token of a split site, without hearing from its owner",
    )
    address_turn_s: float = Field(
        2.0,
        gt=0,
        description="How long a shard uses an address, or token of a split site, for itself when others wait for it",
    )

    @property
    def reserved(self) -> dict[str, float]:
        """What Ray reserves for each shard, by Ray's names."""
        memory = {"memory": self.memory_bytes} if self.memory_bytes else {}
        return {"CPU": self.cpus, **memory, **self.resources}
