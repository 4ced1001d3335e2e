"""Options of the shard's store."""

from pydantic import BaseModel, ConfigDict, Field


class StateOptions(BaseModel):
    """The store: its memory, and where copies of it go."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    hosts_store: str = Field(
        "",
        description="A directory in which what is learned of hosts (robots.txt, delays, errors, budgets) is kept from "
        "crawl to crawl; one crawl at a time uses it",
        json_schema_extra={"basic": True},
    )
    hosts_store_cache_bytes: int = Field(8 << 20, ge=1 << 20, description="Blocks of that store kept in memory")
    cache_bytes: int = Field(52 << 20, ge=1 << 20, description="Blocks of the store kept in memory")
    write_buffer_bytes: int = Field(
        40 << 20, ge=1 << 20, description="Writes gathered in memory before they are sorted"
    )
    background_bytes_s: int = Field(
        128 << 20, ge=1 << 20, description="Bytes that compaction and flushes may write in a second, to spare the disk"
    )
    checkpoint_uri: str = Field(
        "",
        description="Where checkpoints are kept, so that the disk or a machine may be lost: s3://BUCKET/PREFIX, "
        "gs://, az://, or file:///PATH of a directory, which all machines of a cluster share. Options and secrets are "
        "archive.store_options and archive.store_secrets_file. `gossamer restore URI -o DIR` restores the newest.",
        json_schema_extra={"basic": True},
    )
    checkpoint_s: float = Field(
        300.0,
        gt=0,
        allow_inf_nan=False,
        description="Time between two checkpoints of a shard, in seconds: the most work that the loss of a machine "
        "costs.",
    )
