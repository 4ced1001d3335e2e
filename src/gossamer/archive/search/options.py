"""What can be set about search."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class SearchOptions(BaseModel):
    """The section `search` of the configuration."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    enabled: bool = Field(False, description="Keep a full-text index while crawling; needs gossamer[search].")
    memory_bytes_max: int = Field(
        50_000_000, ge=15_000_000, description="Bytes of the index held in memory before they are written."
    )
    commit_s: float = Field(
        10.0, gt=0, allow_inf_nan=False, description="What was fetched can be found after about this many seconds."
    )
    commit_pages: int = Field(2_000, ge=1, description="Or after so many pages, if that comes first.")
    frame_bytes_max: int = Field(
        1_000_000, ge=1, description="Text held in memory before it goes to the log, even within an epoch."
    )
