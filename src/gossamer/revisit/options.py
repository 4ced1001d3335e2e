"""Options of revisits: how often, how many, and which first."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

DAY_S = 86_400.0


class RevisitOptions(BaseModel):
    """How a continuous crawl (`crawl.mode`) keeps fresh what it has."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    policy: str = Field(
        "optimal",
        description="uniform, proportional, importance, poisson, lambda, optimal, adaptive, or one of your own "
        "(module:Name)",
    )
    interval_s_mean: float = Field(
        DAY_S, gt=0, description="Pages are visited again after so long on average: with their number it is the budget"
    )
    visits_per_s_max: float | None = Field(
        None, gt=0, description="The budget never exceeds so many visits a second, however many pages there are"
    )
    interval_s_min: float = Field(300.0, gt=0, description="No page is visited again sooner than this, unless promised")
    interval_s_max: float = Field(
        30 * DAY_S, gt=0, description="No page that is there is left alone for longer than this"
    )
    share_new: float = Field(
        0.5, ge=0, le=1, description="Share of visits for pages never seen, where pages of both kinds wait"
    )
    importance: dict[str, float] = Field(
        default_factory=dict,
        description="Regular expressions (RE2) and by how much a match multiplies a page's importance",
    )
    max_age_s: dict[str, float] = Field(
        default_factory=dict,
        description="Regular expressions (RE2) and the age that copies of pages that match never exceed, as far as "
        "politeness permits",
    )
    change: Literal["words", "text", "payload"] = Field(
        "words",
        description="What counts as a change: other words; any other character of the text; any other byte.",
    )
    conditional: bool = Field(True, description="Ask for what changed only (If-None-Match, If-Modified-Since)")
    failed_s_first: float = Field(
        3_600.0, gt=0, description="Wait before a page that failed is visited again, at least; doubles each time"
    )
    failures_max: int = Field(12, ge=1, description="Failures in a row after which a page is given up")
    gone_max: int = Field(5, ge=1, description="Answers 404 or 410 in a row after which a page is given up")
    host_sleep_s_max: float = Field(
        DAY_S, gt=0, description="Longest sleep of a failing host: a continuous crawl closes no host for failing"
    )
    memory_visits: int = Field(
        60, ge=4, description="Visits after which what was learned of a page weighs a third: pages change their habits"
    )
    rhythms_cached_max: int = Field(500, ge=16, description="Hosts whose rhythm is kept in memory")
