"""Sections: one model per section of the configuration, one line each in `Config`."""

from __future__ import annotations

import difflib
import re
from ipaddress import ip_address
from typing import Annotated, Literal, Self

from pydantic import BaseModel, BeforeValidator, Field, PrivateAttr, field_validator, model_validator

from gossamer.archive.options import ArchiveOptions, SearchOptions
from gossamer.cluster.options import ClusterOptions
from gossamer.crawl.options import (
    CookiesOptions,
    CrawlOptions,
    LimitsOptions,
    LoginsOptions,
    LogsOptions,
    WatchOptions,
)
from gossamer.fetch.options import FetchOptions, RequestOptions
from gossamer.frontier.options import (
    BudgetOptions,
    FrontierOptions,
    HostsOptions,
    PolitenessOptions,
    WalkOptions,
)
from gossamer.model.errors import ConfigError
from gossamer.model.options import BASIC, LIVE, Section, WebAddress
from gossamer.model.patterns import PatternSet
from gossamer.model.usage import PURPOSES, SYNONYMS
from gossamer.process.options import ExtractOptions, ProcessOptions
from gossamer.render.options import RenderOptions
from gossamer.resolve.options import ResolveOptions
from gossamer.revisit.options import DiscoveryOptions, RevisitOptions, WebsubOptions
from gossamer.robots.options import RobotsOptions
from gossamer.scope.options import ScopeOptions
from gossamer.seen.options import SeenOptions
from gossamer.state.options import StateOptions
from gossamer.url.join import absolute
from gossamer.url.name import SCHEMES, host_of
from gossamer.url.options import UrlOptions
from gossamer.url.site import site_of

HEADER_CHARACTERS_MAX = 400
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*").fullmatch
_MAIL = re.compile(r"(?:mailto:)?[^@\s:/]+@[^@\s:/]+").fullmatch
is_https_origin = re.compile(r"https://[a-z0-9.-]+(?::[0-9]{1,5})?").fullmatch
_UNITS = {"": 1, "b": 1, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "kb": 10**3, "mb": 10**6, "gb": 10**9}


def bytes_of(value: object) -> object:
    """Return the number of bytes that a text such as 512MiB names; anything else as it is."""
    if not isinstance(value, str):
        return value
    written = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", value)
    if written is None or written[2].lower() not in _UNITS:
        raise ValueError("expected a number of bytes, or one with its unit, such as 512MiB or 4GiB")
    return int(float(written[1]) * _UNITS[written[2].lower()])


class SeedsOptions(Section):
    """Where the crawl begins, and what an offline one fetches."""

    urls: tuple[str, ...] = Field(
        (), description="Seeds; those on the command line are added.", json_schema_extra=BASIC
    )
    file: str = Field(
        "",
        description="A file of seeds, one URL a line, # begins a comment; or a sitemap, bookmarks (HTML), CSV with a "
        "column url, WARC, CDX, CDXJ or an index of Common Crawl; - is standard input.",
        json_schema_extra=BASIC,
    )
    requests_file: str = Field(
        "",
        description="A file of requests, one JSON object a line: url, method, headers, body, idempotent.",
        json_schema_extra=BASIC,
    )
    domains_file: str = Field(
        "",
        description="A file of domains, one a line; the front page of each, stripped of its subdomains, is a seed.",
        json_schema_extra=BASIC,
    )
    segments: tuple[str, ...] = Field(
        (), description="Segments that an offline crawl takes in, in order.", json_schema_extra=BASIC
    )
    watch_directory: str = Field(
        "",
        description="Where an offline crawl looks for its next segment when fewer than frontier.hosts_min hosts are "
        "left; what it has taken in it renames.",
    )
    watch_s_max: float | None = Field(
        None, ge=0, description="How long it waits there with nothing to fetch, in seconds; none: until it is stopped."
    )


class OutputOptions(Section):
    """Where the crawl goes."""

    directory: str = Field(
        "crawl", min_length=1, description="The crawl's directory; one crawl, one directory.", json_schema_extra=BASIC
    )


class OperatorOptions(Section):
    """Who crawls: what server operators see in their logs."""

    contact: str = Field(
        "",
        description="A URL or mail address where you can be reached; public addresses are not visited without it.",
        json_schema_extra=BASIC,
    )
    agent: str = Field(
        "", description="The User-Agent header; empty: gossamer/VERSION (+CONTACT).", json_schema_extra=BASIC
    )

    purpose: tuple[str, ...] = Field(
        (),
        description="What the crawl is for: search, ai-train, ai-input, archive. What sites or pages refuse for all of "
        "these is not fetched, or not kept. Empty: nothing is refused.",
        json_schema_extra=BASIC,
    )

    @field_validator("purpose")
    @classmethod
    def _known_purposes(cls, purposes: tuple[str, ...]) -> tuple[str, ...]:
        named = tuple(dict.fromkeys(SYNONYMS.get(one, one) for one in purposes))
        for one in named:
            if one not in PURPOSES:
                raise ValueError(f"no purpose is called {one!r}; known are {', '.join(PURPOSES)}")
        return named

    @field_validator("contact")
    @classmethod
    def _one_word(cls, contact: str) -> str:
        if contact and not (contact.isascii() and contact.isprintable() and ("@" in contact or "://" in contact)):
            raise ValueError("expected a mail address or a URL, in ASCII")
        if " " in contact or len(contact) > HEADER_CHARACTERS_MAX:
            raise ValueError(
                f"expected one mail address or URL without spaces, at most {HEADER_CHARACTERS_MAX} characters"
            )
        return contact

    @field_validator("agent")
    @classmethod
    def _one_header(cls, agent: str) -> str:
        if not (agent.isascii() and (not agent or agent.isprintable())) or len(agent) > HEADER_CHARACTERS_MAX:
            raise ValueError(f"expected printable ASCII, at most {HEADER_CHARACTERS_MAX} characters")
        return agent

    def user_agent(self, version: str) -> str:
        """Return the User-Agent header of this operator."""
        return self.agent or f"gossamer/{version}" + (f" (+{self.contact})" if self.contact else "")


class IdentityOptions(Section):
    """How the crawl proves who sends its requests, and what its own page says."""

    key_file: str = Field(
        "",
        description="Key file of `gossamer identity new`: each HTTP request is signed (Web Bot Auth). Empty: none is.",
    )
    directory: str = Field(
        "",
        description="The https origin that publishes the public keys, as `gossamer identity directory` writes them.",
    )
    signature_s: int = Field(
        300, ge=10, le=86_400, description="How long a signature is valid. Clocks of servers may differ by minutes."
    )
    send_from: bool = Field(False, description="Send the mail address of operator.contact in the From header.")
    about: str = Field("", description="Why you crawl, in a few sentences, for the page about the crawl.")

    @field_validator("directory")
    @classmethod
    def _is_origin(cls, directory: str) -> str:
        if directory and not is_https_origin(directory):
            raise ValueError("expected an https origin without a path, in lower case, such as https://bot.example.org")
        return directory

    @model_validator(mode="after")
    def _is_published(self) -> Self:
        if self.key_file and not self.directory:
            raise ValueError("key_file needs directory, the https origin where verifiers find the public keys")
        return self


class ComponentsOptions(Section):
    """Components of your own in place of ours, or beside them: each `module:Name` or an entry point's name."""

    frontier: str = Field("", description="A frontier around ours, which keeps the gates.")
    prioritizer: str = Field("", description="Replaces what frontier.priority names.")
    url_seen: str = Field("", description="The duplicate URL eliminator.")
    content_seen: str = Field("", description="The content-seen test.")
    resolver: str = Field("", description="Finds the addresses of hosts.")
    filters: tuple[str, ...] = Field((), description="Filters beside ours, in order.")
    archives: tuple[str, ...] = Field((), description="Archives beside WARC and tables, in order.")
    protocols: dict[str, str] = Field(
        default_factory=dict, description="Protocol modules by scheme: in place of ours, or of a scheme of your own."
    )

    @field_validator("protocols")
    @classmethod
    def _schemes(cls, protocols: dict[str, str]) -> dict[str, str]:
        for scheme in protocols:
            if not _SCHEME(scheme):
                raise ValueError(f"{scheme!r} is no scheme; write one in lower case, such as 'finger', without colon")
            if scheme.startswith("http") and scheme not in SCHEMES:
                raise ValueError(
                    f"{scheme!r} begins with 'http', by which web addresses are recognized; choose another name"
                )
        return protocols


class MemoryOptions(Section):
    """How much memory the crawl may use."""

    budget_bytes: Annotated[int, BeforeValidator(bytes_of)] = Field(
        512 << 20,
        ge=1,
        le=1 << 40,
        description="Memory of the process tree; also written 512MiB or 4GiB. Parts whose keys are not set take "
        "their share of it: see docs/reference/memory.md.",
        json_schema_extra=BASIC,
    )
    huge_pages: bool = Field(
        True, description="Ask the system for pages of 2 MiB for what the process holds (Linux 6.1); elsewhere nothing."
    )


class ProgressOptions(Section):
    """What the command line shows while it crawls."""

    style: Literal["auto", "live", "plain", "json", "quiet"] = Field(
        "auto", description="auto: live on a terminal, plain lines elsewhere.", json_schema_extra=BASIC
    )
    interval_s: float = Field(
        5.0,
        gt=0,
        allow_inf_nan=False,
        description="Between plain or JSON lines, in seconds.",
        json_schema_extra=LIVE,
    )


class ConsoleOptions(Section):
    """What is served while the crawl runs, on loopback unless another address is named."""

    port: int | None = Field(
        None, ge=0, le=65_535, description="Serve on this port; 0 takes any. None: not served.", json_schema_extra=BASIC
    )
    public_url: WebAddress = Field(
        "",
        description="Where the console is reached from outside, through a proxy of yours; hubs call back there.",
        json_schema_extra=BASIC,
    )
    address: str = Field(
        "127.0.0.1",
        description="Serve on this address. On any but a loopback address every request needs the token.",
        json_schema_extra=BASIC,
    )
    body_bytes_max: int = Field(4 << 20, ge=1_024, description="A longer body of a request is refused.")
    crawls_max: int = Field(
        4,
        ge=1,
        description="How many crawls `gossamer serve` without a directory runs at once.",
    )
    connections_max: int = Field(
        64, ge=1, description="Connections at once. A new one takes the place of an idle or slow one."
    )
    request_s_max: float = Field(
        10.0, gt=0, description="A request whose head, or whose body, takes longer to arrive is given up."
    )

    @field_validator("address")
    @classmethod
    def _is_ours(cls, address: str) -> str:
        try:
            return str(ip_address(address))
        except ValueError:
            raise ValueError("expected an IP address, such as 127.0.0.1 or 0.0.0.0") from None


class Config(Section):
    """The whole configuration. A section is named after the package that reads it."""

    seeds: SeedsOptions = SeedsOptions()
    output: OutputOptions = OutputOptions()
    limits: LimitsOptions = LimitsOptions()
    memory: MemoryOptions = MemoryOptions()
    operator: OperatorOptions = OperatorOptions()
    identity: IdentityOptions = IdentityOptions()
    politeness: PolitenessOptions = PolitenessOptions()
    host: HostsOptions = HostsOptions()
    url: UrlOptions = UrlOptions()
    scope: ScopeOptions = ScopeOptions()
    seen: SeenOptions = SeenOptions()
    frontier: FrontierOptions = FrontierOptions()
    budget: BudgetOptions = BudgetOptions()
    walk: WalkOptions = WalkOptions()
    revisit: RevisitOptions = RevisitOptions()
    resolve: ResolveOptions = ResolveOptions()
    robots: RobotsOptions = RobotsOptions()
    fetch: FetchOptions = FetchOptions()
    request: RequestOptions = RequestOptions()
    cookies: CookiesOptions = CookiesOptions()
    login: LoginsOptions = LoginsOptions()
    process: ProcessOptions = ProcessOptions()
    extract: ExtractOptions = ExtractOptions()
    render: RenderOptions = RenderOptions()
    archive: ArchiveOptions = ArchiveOptions()
    search: SearchOptions = SearchOptions()
    discovery: DiscoveryOptions = DiscoveryOptions()
    websub: WebsubOptions = WebsubOptions()
    console: ConsoleOptions = ConsoleOptions()
    state: StateOptions = StateOptions()
    crawl: CrawlOptions = CrawlOptions()
    cluster: ClusterOptions = ClusterOptions()
    watch: WatchOptions = WatchOptions()
    logs: LogsOptions = LogsOptions()
    components: ComponentsOptions = ComponentsOptions()
    progress: ProgressOptions = ProgressOptions()

    @model_validator(mode="after")
    def _from_is_mail(self) -> Self:
        if self.identity.send_from and not _MAIL(self.operator.contact):
            raise ConfigError("identity.send_from: operator.contact is no mail address; set one, or send_from = false")
        return self

    @model_validator(mode="after")
    def _split_sites_fit(self) -> Self:
        if self.url.split_sites and self.state.hosts_store:
            raise ConfigError("url.split_sites: state.hosts_store keeps hosts by their site; leave out one of the two")
        for site in self.url.split_sites:
            pages = ((name, absolute(rule.url) or "") for name, rule in self.login.rules.items())
            logins = [name for name, page in pages if site_of(host_of(page) or "") == site]
            if self.cookies.wanted or logins:
                keys = f"login.{logins[0]}" if logins else "cookies"
                raise ConfigError(f"url.split_sites: {site} has one jar of cookies ({keys}); leave out one of the two")
        return self

    @field_validator("frontier")
    @classmethod
    def _scores_are_regular(cls, frontier: FrontierOptions) -> FrontierOptions:
        PatternSet(tuple(frontier.scores))
        return frontier

    @field_validator("revisit")
    @classmethod
    def _patterns_are_regular(cls, revisit: RevisitOptions) -> RevisitOptions:
        PatternSet((*revisit.importance, *revisit.max_age_s))
        return revisit

    @model_validator(mode="after")
    def _schemes_have_modules(self) -> Self:
        known = tuple(dict.fromkeys((*SCHEMES, *self.components.protocols)))
        for scheme in self.scope.schemes:
            if scheme not in known:
                near = difflib.get_close_matches(scheme, known, n=1, cutoff=0.5)
                hint = (
                    f"did you mean {near[0]!r}?"
                    if near
                    else f"known are {', '.join(known)}, and those that components.protocols adds"
                )
                raise ConfigError(f"no scheme is called {scheme!r}; {hint}")
        return self

    _origins: dict[str, str] = PrivateAttr(default_factory=dict)

    def origin(self, key: str) -> str:
        """Say where the value of `section.key` came from: `default`, a file with its line, or an option."""
        return self._origins.get(key, "default")

    @property
    def origins(self) -> dict[str, str]:
        """A copy of what `origin` knows, by dotted key."""
        return dict(self._origins)

    def value(self, key: str) -> object:
        """Return the value of `section.key`."""
        section, _, name = key.partition(".")
        options = getattr(self, section)
        return getattr(options, name) if name in type(options).model_fields else (options.model_extra or {}).get(name)

    def all_keys(self) -> list[str]:
        """Return every dotted key of this configuration: those that all have, and those of tables with names."""
        named = [*(f"host.{host}" for host in self.host.overrides), *(f"request.{at}" for at in self.request.rules)]
        named += [f"login.{name}" for name in self.login.rules]
        named += [f"extract.{name}" for name in self.extract.rules]
        return [*keys(), *named]

    def with_origins(self, origins: dict[str, str]) -> Config:
        """Return the same configuration, its values coming from where `origins` says, by dotted key."""
        copy = self.model_copy()
        copy._origins = dict(origins)  # noqa: SLF001 - our own
        return copy


def sections() -> dict[str, type[BaseModel]]:
    """Return the model of each section, in the order of the file."""
    found: dict[str, type[BaseModel]] = {}
    for name, field in Config.model_fields.items():
        assert isinstance(field.annotation, type)
        assert issubclass(field.annotation, BaseModel)
        found[name] = field.annotation
    return found


def keys() -> list[str]:
    """Return every dotted key there is, in the order of the file."""
    return [f"{section}.{key}" for section, model in sections().items() for key in model.model_fields]
