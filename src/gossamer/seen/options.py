"""Options of the duplicate tests."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class SeenOptions(BaseModel):
    """What counts as the same, and how much of it is kept in memory."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    popular_urls_max: int = Field(200_000, ge=0, description="Fingerprints kept in memory in front of the store")
    content_scope: Literal["host", "site", "shard"] = Field(
        "site", description="Within what an identical body is archived as a revisit"
    )
