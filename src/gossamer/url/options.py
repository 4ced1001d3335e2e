"""Options: the section `url` of the configuration."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field, field_validator

from gossamer.url.canonical import check_rules
from gossamer.url.rules import DEFAULT_RULES


class UrlOptions(BaseModel):
    """When two addresses are one."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    rules: tuple[str, ...] = Field(
        default=DEFAULT_RULES,
        description="Canonical rules by which addresses are compared; docs/rules.md lists them.",
    )

    @field_validator("rules")
    @classmethod
    def _known(cls, rules: tuple[str, ...]) -> tuple[str, ...]:
        check_rules(rules)
        return rules
