"""Options of robots.txt."""

from typing import Annotated

from pydantic import Field, StringConstraints

from gossamer.model.options import BASIC, Section


class RobotsOptions(Section):
    """How robots.txt is obeyed, kept and retried."""

    obey: bool = Field(
        default=True,
        description="Ask for robots.txt and obey it; false only for your own servers.",
        json_schema_extra=BASIC,
    )
    product_token: str = Field(
        default="gossamer",
        pattern=r"^[A-Za-z_-]+$",
        description="The name by which robots.txt files may address us.",
        json_schema_extra=BASIC,
    )
    agents: tuple[Annotated[str, StringConstraints(pattern=r"^[A-Za-z_-]+$")], ...] = Field(
        default=(),
        description="Further product tokens, in order: where no group names product_token, the groups of the first of "
        "these that a file names hold.",
    )
    ttl_s: float = Field(default=86_400.0, gt=0, description="A copy is good for this long unless the server says.")
    ttl_s_min: float = Field(default=3_600.0, gt=0, description="A shorter Cache-Control max-age counts as this.")
    ttl_s_max: float = Field(default=86_400.0, gt=0, description="A longer Cache-Control max-age counts as this.")
    stale_s_max: float = Field(
        default=7 * 86_400.0,
        ge=0,
        description="A copy whose refresh keeps failing is obeyed until it is this old; then all is disallowed.",
    )
    body_bytes_max: int = Field(
        default=512_000, ge=512_000, description="Bytes of a robots.txt that are read; cut at the end of a line."
    )
    redirects_max: int = Field(
        default=5, ge=0, description="Redirects followed, also to other hosts; beyond: no rules."
    )
    retry_first_s: float = Field(
        default=60.0, gt=0, description="First pause after robots.txt could not be fetched; doubles."
    )
    unanswered_first_s: float = Field(
        default=5.0,
        gt=0,
        description="The first pause where there was no connection, or no address; doubles.",
    )
    retry_s_max: float = Field(default=3_600.0, gt=0, description="The longest such pause.")
    robots_wait_max_s: float = Field(
        default=600.0,
        ge=0,
        description="An origin whose robots.txt could not be fetched for this long is given up: its URLs end as "
        "robots_unreachable (a continuous crawl: 21600).",
        json_schema_extra=BASIC,
    )
    certificate_tries_max: int = Field(
        default=5, ge=1, description="Tries after which an origin whose certificate is refused is given up, if sooner."
    )
    cache_hosts_max: int = Field(default=10_000, ge=1, description="Hosts whose parsed rules are kept in memory.")
    cache_bytes_max: int = Field(
        default=15 << 20, ge=0, description="Memory for those texts, and as much again for the rules made of them."
    )

    @property
    def tokens(self) -> tuple[str, ...]:
        """All product tokens, the most specific first."""
        return (self.product_token, *self.agents)
