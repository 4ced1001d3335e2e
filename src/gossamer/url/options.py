"""Options: the section `url` of the configuration."""

from typing import Annotated

from gossamer.options import Key, Section
from gossamer.url.canonical import Canonicalizer, check_rules, check_site
from gossamer.url.hosts import HostNameRules
from gossamer.url.rules import DEFAULT_RULES


class HostOptions(Section, frozen=True):
    """By which name a host is compared. Kinds run in this order; of one kind the first rule that fits is applied."""

    starts_with: Annotated[dict[str, str], Key('Starts of hosts: `{"www." = ""}`.')] = {}
    ends_with: Annotated[dict[str, str], Key("Ends of hosts, each beginning with a dot.")] = {}
    synonyms: Annotated[dict[str, str], Key("Whole hosts, and by which each is compared.")] = {}

    def __post_init__(self) -> None:
        self.rules()

    def rules(self) -> HostNameRules:
        """Return the rules that these options state."""
        return HostNameRules(self.starts_with, self.ends_with, self.synonyms)


def _check(rules: tuple[str, ...]) -> tuple[str, ...]:
    check_rules(rules)
    return rules


class SiteRules(Section, frozen=True):
    """The rules of one site, in place of those of all."""

    rules: Annotated[tuple[str, ...], Key("Canonical rules for this site.", check=_check)] = DEFAULT_RULES


class UrlOptions(Section, frozen=True):
    """When two addresses are one."""

    rules: Annotated[
        tuple[str, ...],
        Key("Canonical rules by which addresses are compared; docs/reference/scope.md lists them.", check=_check),
    ] = DEFAULT_RULES
    hosts: Annotated[
        HostOptions, Key("Hosts compared as one: `starts_with`, `ends_with` and `synonyms`, each from old to new.")
    ] = HostOptions()
    sites: Annotated[
        dict[str, SiteRules], Key("Rules of single sites by registrable domain, in place of `rules`.", names=check_site)
    ] = {}
    split_sites: Annotated[
        tuple[str, ...],
        Key(
            "Large sites (registrable domains) whose hosts are divided among the shards of a crawl; one shard has "
            "all hosts of any other site. A crawl keeps the value that it began with.",
            check=lambda sites: tuple(sorted(set(map(check_site, sites)))),
        ),
    ] = ()

    def __post_init__(self) -> None:
        rules = self.hosts.rules() if self.split_sites else None
        for site in self.split_sites:
            if rules is not None and not rules.keeps_to(site):
                raise ValueError(
                    f"split_sites: hosts of {site} are compared with those of other sites by url.hosts; leave out one"
                )

    @property
    def split(self) -> frozenset[str]:
        """The sites whose hosts have a partition each."""
        return frozenset(self.split_sites)

    def canonicalizer(self) -> Canonicalizer:
        """Return the canonicalizer with these options."""
        own = {name: site.rules for name, site in self.sites.items()}
        return Canonicalizer(self.rules, self.hosts.rules(), own)
