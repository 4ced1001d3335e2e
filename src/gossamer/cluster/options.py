"""Options of the cluster."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class ClusterOptions(BaseModel):
    """Section `[cluster]`: several shards."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    workers: int = Field(1, ge=1, le=1024, description="Shards; more than one runs on Ray")
    arrived_bytes_max: int = Field(
        8 << 20, ge=1 << 20, description="Links that came from other shards and wait to be taken in, per shard"
    )
    known_urls_max: int = Field(
        1 << 18, ge=0, description="URLs of other shards that are remembered as sent, so that they are sent once"
    )
    resend_s: float = Field(5.0, gt=0, description="A batch that nobody confirms is sent again after so long")
    address_term_s: float = Field(
        15.0, gt=0, description="How long a shard may use an address that it borrowed without hearing from its lender"
    )
    address_turn_s: float = Field(
        2.0, gt=0, description="How long a shard uses an address for itself when others wait for it"
    )
