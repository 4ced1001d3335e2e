"""Options of the shard's store."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class StateOptions(BaseModel):
    """Memory that the store may use."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    cache_bytes: int = Field(64 << 20, ge=1 << 20, description="Blocks of the store kept in memory")
    write_buffer_bytes: int = Field(
        48 << 20, ge=1 << 20, description="Writes gathered in memory before they are sorted"
    )
    background_bytes_s: int = Field(
        128 << 20, ge=1 << 20, description="Bytes that compaction and flushes may write in a second, to spare the disk"
    )
