"""Options: the section `url` of the configuration."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator, model_validator

from gossamer.url.canonical import Canonicalizer, check_rules, check_site
from gossamer.url.hosts import HostNameRules
from gossamer.url.rules import DEFAULT_RULES


class HostOptions(BaseModel):
    """By which name a host is compared. Kinds run in this order; of one kind the first rule that fits is applied."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    starts_with: dict[str, str] = Field(default_factory=dict, description='Starts of hosts: `{"www." = ""}`.')
    ends_with: dict[str, str] = Field(default_factory=dict, description="Ends of hosts, each beginning with a dot.")
    synonyms: dict[str, str] = Field(default_factory=dict, description="Whole hosts, and by which each is compared.")

    @model_validator(mode="after")
    def _meant(self) -> HostOptions:
        self.rules()
        return self

    def rules(self) -> HostNameRules:
        """Return the rules that these options state."""
        return HostNameRules(self.starts_with, self.ends_with, self.synonyms)


def _known(rules: tuple[str, ...]) -> tuple[str, ...]:
    check_rules(rules)
    return rules


RuleNames = Annotated[tuple[str, ...], AfterValidator(_known)]


class SiteRules(BaseModel):
    """The rules of one site, in place of those of all."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    rules: RuleNames = Field(default=DEFAULT_RULES, description="Canonical rules for this site.")


class UrlOptions(BaseModel):
    """When two addresses are one."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    rules: RuleNames = Field(
        default=DEFAULT_RULES,
        description="Canonical rules by which addresses are compared; docs/reference/scope.md lists them.",
    )
    hosts: HostOptions = Field(
        default=HostOptions(),
        description="Hosts compared as one: `starts_with`, `ends_with` and `synonyms`, each from old to new.",
    )
    sites: dict[str, SiteRules] = Field(
        default_factory=dict,
        description="Rules of single sites by registrable domain, in place of `rules`.",
    )
    split_sites: tuple[str, ...] = Field(
        default=(),
        description="Large sites (registrable domains) whose hosts are divided among the shards of a crawl; of others "
        "one shard has all hosts. A crawl keeps what it began with.",
    )

    @field_validator("sites")
    @classmethod
    def _sites(cls, sites: dict[str, SiteRules]) -> dict[str, SiteRules]:
        for name in sites:
            check_site(name)
        return sites

    @field_validator("split_sites")
    @classmethod
    def _are_sites(cls, sites: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(sorted({check_site(site) for site in sites}))

    @model_validator(mode="after")
    def _split_by_their_own_hosts(self) -> UrlOptions:
        rules = self.hosts.rules() if self.split_sites else None
        for site in self.split_sites:
            if rules is not None and not rules.keeps_to(site):
                raise ValueError(
                    f"split_sites: hosts of {site} are compared with those of other sites by url.hosts; leave out one"
                )
        return self

    @property
    def split(self) -> frozenset[str]:
        """The sites whose hosts have a partition each."""
        return frozenset(self.split_sites)

    def canonicalizer(self) -> Canonicalizer:
        """Return what makes keys by these options."""
        own = {name: site.rules for name, site in self.sites.items()}
        return Canonicalizer(self.rules, self.hosts.rules(), own)
