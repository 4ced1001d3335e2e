"""Sections: one model per section of the configuration, one line each in `Config`."""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from ipaddress import ip_address
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from msgspec.structs import replace

from gossamer.cluster.options import ClusterOptions
from gossamer.engine.options import CrawlOptions, LimitsOptions, LogsOptions, WatchOptions
from gossamer.features.logins.options import CookiesOptions, LoginOptions
from gossamer.features.mentions.options import WebmentionOptions
from gossamer.features.proxies.options import ProxiesOptions
from gossamer.features.render.options import RenderOptions
from gossamer.features.revisit.options import DiscoveryOptions, RevisitOptions, WebsubOptions, web_address
from gossamer.model.usage import PURPOSES, SYNONYMS
from gossamer.options import Key, Mistake, NamedSection, Section, keys_of, nearest, rules_key, rules_of
from gossamer.stages.archive.options import ArchiveOptions, SearchOptions
from gossamer.stages.fetch.options import FetchOptions, RequestOptions
from gossamer.stages.frontier.options import (
    BudgetOptions,
    FrontierOptions,
    HostsOptions,
    PolitenessOptions,
    WalkOptions,
)
from gossamer.stages.process.options import ExtractOptions, ProcessOptions
from gossamer.stages.resolve.options import ResolveOptions
from gossamer.stages.robots.options import RobotsOptions
from gossamer.stages.scope.options import ScopeOptions
from gossamer.stages.seen.options import SeenOptions
from gossamer.state.options import StateOptions
from gossamer.url.join import absolute
from gossamer.url.name import SCHEMES, host_of
from gossamer.url.options import UrlOptions
from gossamer.url.site import site_of

HEADER_CHARACTERS_MAX = 400
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*").fullmatch
_MAIL = re.compile(r"(?:mailto:)?[^@\s:/]+@[^@\s:/]+").fullmatch
is_https_origin = re.compile(r"https://[a-z0-9.-]+(?::[0-9]{1,5})?").fullmatch


class SeedsOptions(Section, frozen=True):
    """Where the crawl begins, and what an offline crawl fetches."""

    urls: Annotated[tuple[str, ...], Key("Seeds; those on the command line are added.", basic=True)] = ()
    file: Annotated[
        str,
        Key(
            "A file of seeds, one URL a line, # begins a comment; or a sitemap, bookmarks (HTML), CSV with a column "
            "url, WARC, CDX, CDXJ or an index of Common Crawl; - is standard input.",
            basic=True,
            path="read",
        ),
    ] = ""
    requests_file: Annotated[
        str, Key("Requests, one JSON object a line: url, method, headers, body, idempotent.", basic=True, path="read")
    ] = ""
    domains_file: Annotated[
        str, Key("Domains, one a line; the front page of each registrable domain is a seed.", basic=True, path="read")
    ] = ""
    segments: Annotated[
        tuple[str, ...], Key("Segments that an offline crawl fetches, in order.", basic=True, path="read")
    ] = ()
    watch_directory: Annotated[
        str,
        Key(
            "Where an offline crawl looks for its next segment when fewer than frontier.hosts_min hosts are left; "
            "it renames the segments that it has taken.",
            path="written",
        ),
    ] = ""
    watch_s_max: Annotated[
        float | None, Key("Seconds that it waits there with nothing to fetch; none: until it is stopped.", ge=0)
    ] = None


class OutputOptions(Section, frozen=True):
    """Where the results of the crawl are written."""

    directory: Annotated[str, Key("The crawl's directory; it holds one crawl.", min_length=1, basic=True)] = "crawl"


def _check_purposes(purposes: tuple[str, ...]) -> tuple[str, ...]:
    named = tuple(dict.fromkeys(SYNONYMS.get(one, one) for one in purposes))
    for one in named:
        if one not in PURPOSES:
            raise ValueError(f"no purpose is called {one!r}; known are {', '.join(PURPOSES)}")
    return named


def _one_word(contact: str) -> str:
    if contact and not (contact.isascii() and contact.isprintable() and ("@" in contact or "://" in contact)):
        raise ValueError("expected a mail address or a URL, in ASCII")
    if " " in contact or len(contact) > HEADER_CHARACTERS_MAX:
        raise ValueError(f"expected one mail address or URL without spaces, at most {HEADER_CHARACTERS_MAX} characters")
    return contact


def _one_header(agent: str) -> str:
    if not (agent.isascii() and (not agent or agent.isprintable())) or len(agent) > HEADER_CHARACTERS_MAX:
        raise ValueError(f"expected printable ASCII, at most {HEADER_CHARACTERS_MAX} characters")
    return agent


class OperatorOptions(Section, frozen=True):
    """The crawl's operator, as server operators see it in their logs."""

    contact: Annotated[
        str, Key("URL or mail address of yours; without it, no public address is visited.", basic=True, check=_one_word)
    ] = ""
    agent: Annotated[
        str, Key("The User-Agent header; empty: gossamer/VERSION (+CONTACT).", basic=True, check=_one_header)
    ] = ""

    purpose: Annotated[
        tuple[str, ...],
        Key(
            "What the crawl is for: search, ai-train, ai-input, archive. Pages whose owners refuse all of these are "
            "not fetched, or not kept. Empty: no page is left out.",
            basic=True,
            check=_check_purposes,
        ),
    ] = ()

    def user_agent(self, version: str) -> str:
        """Return the User-Agent header of this operator."""
        return self.agent or f"gossamer/{version}" + (f" (+{self.contact})" if self.contact else "")


def _is_origin(directory: str) -> str:
    if directory and not is_https_origin(directory):
        raise ValueError("expected an https origin without a path, in lower case, such as https://bot.example.org")
    return directory


class IdentityOptions(Section, frozen=True):
    """How the crawl proves who sends its requests, and what its own page says."""

    key_file: Annotated[
        str, Key("Key of `gossamer identity new`, which signs HTTP requests (Web Bot Auth); empty: none.", path="read")
    ] = ""
    directory: Annotated[
        str, Key("The https origin of the public keys that `gossamer identity directory` writes.", check=_is_origin)
    ] = ""
    signature_s: Annotated[
        int, Key("How long a signature is valid. Clocks of servers may differ by minutes.", ge=10, le=86_400)
    ] = 300
    send_from: Annotated[bool, Key("Send the mail address of operator.contact in the From header.")] = False
    about: Annotated[str, Key("Why you crawl, in a few sentences, for the page about the crawl.")] = ""

    def __post_init__(self) -> None:
        if self.key_file and not self.directory:
            raise ValueError("key_file needs directory, the https origin where verifiers find the public keys")


def _require_scheme(scheme: str) -> None:
    if not _SCHEME(scheme):
        raise ValueError(f"{scheme!r} is no scheme; write one in lower case, such as 'finger', without colon")
    if scheme.startswith("http") and scheme not in SCHEMES:
        raise ValueError(f"{scheme!r} begins with 'http', by which web addresses are recognized; choose another name")


class ComponentsOptions(Section, frozen=True):
    """Components of your own in place of ours, or beside them: each `module:Name` or an entry point's name."""

    frontier: Annotated[str, Key("A frontier that wraps the built-in one, which still applies politeness.")] = ""
    prioritizer: Annotated[str, Key("Replaces what frontier.priority names.")] = ""
    bias: Annotated[str, Key("Draws the level that is next, in place of frontier.level_bias.")] = ""
    url_seen: Annotated[str, Key("The duplicate URL eliminator.")] = ""
    content_seen: Annotated[str, Key("The content-seen test.")] = ""
    resolver: Annotated[str, Key("Finds the addresses of hosts.")] = ""
    filters: Annotated[tuple[str, ...], Key("Filters after the built-in ones, in order.")] = ()
    middleware: Annotated[tuple[str, ...], Key("Visit middleware after the built-in one, in order.")] = ()
    archives: Annotated[tuple[str, ...], Key("Archives in addition to WARC and tables, in order.")] = ()
    protocols: Annotated[
        dict[str, str],
        Key("Protocol modules by scheme: in place of a built-in one, or for a further scheme.", names=_require_scheme),
    ] = {}

    def entries(self) -> Iterator[tuple[str, str]]:
        """Yield the names of these components, each with its dotted key."""
        for field in self.__struct_fields__:
            key = f"components.{field}"
            value = getattr(self, field)
            if isinstance(value, dict):
                yield from ((f"{key}.{scheme}", name) for scheme, name in value.items())
            else:
                yield from ((key, name) for name in ([value] if isinstance(value, str) else value) if name)


class MemoryOptions(Section, frozen=True):
    """How much memory the crawl may use."""

    budget_bytes: Annotated[
        int, Key("Memory of all processes, such as 512MiB; other keys have shares of it.", ge=1, le=1 << 40, basic=True)
    ] = 512 << 20


class ProgressOptions(Section, frozen=True):
    """Progress that the command line shows while it crawls."""

    style: Annotated[
        Literal["auto", "live", "plain", "json", "quiet"],
        Key("auto: live on a terminal, plain lines elsewhere.", basic=True),
    ] = "auto"
    interval_s: Annotated[float, Key("Seconds between plain or JSON lines.", gt=0, le=86_400, live=True)] = 5.0


def _is_ours(address: str) -> str:
    try:
        return str(ip_address(address))
    except ValueError:
        raise ValueError("expected an IP address, such as 127.0.0.1 or 0.0.0.0") from None


class ConsoleOptions(Section, frozen=True):
    """The dashboard and HTTP API, served while the crawl runs."""

    port: Annotated[
        int | None, Key("Serve on this port; 0 takes any. None: not served.", ge=0, le=65_535, basic=True)
    ] = None
    public_url: Annotated[
        str,
        Key(
            "URL of the console from outside, through your proxy; requests there need the token. Hubs call it.",
            basic=True,
            check=web_address,
        ),
    ] = ""
    replay_url: Annotated[
        str,
        Key(
            "URL of archived pages from outside: a name of its own, which your proxy leads to the port after the "
            "console's. Empty: they are not shown at public_url.",
            check=web_address,
        ),
    ] = ""
    address: Annotated[
        str,
        Key("Serve on this address; on all but loopback, each request needs the token.", basic=True, check=_is_ours),
    ] = "127.0.0.1"
    body_bytes_max: Annotated[int, Key("A longer body of a request is refused.", ge=1_024)] = 4 << 20
    crawls_max: Annotated[int, Key("How many crawls `gossamer serve` without a directory runs at once.", ge=1)] = 4
    connections_max: Annotated[
        int, Key("Connections at once. A new one takes the place of an idle or slow one.", ge=1)
    ] = 64
    request_s_max: Annotated[
        float, Key("A request whose head, or whose body, takes longer to arrive is given up.", gt=0)
    ] = 10.0

    def __post_init__(self) -> None:
        outside = urlsplit(self.public_url)
        replay = urlsplit(self.replay_url)
        # No archived page has the console's origin, and browsers show no http in a page of https.
        if self.replay_url and (replay.hostname == outside.hostname or replay.scheme != outside.scheme):
            raise ValueError(
                "replay_url has another host than public_url, such as https://replay.example.org beside it"
            )


class Config(Section, frozen=True):
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
    proxies: ProxiesOptions = ProxiesOptions()
    cookies: CookiesOptions = CookiesOptions()
    login: LoginOptions = LoginOptions()
    process: ProcessOptions = ProcessOptions()
    extract: ExtractOptions = ExtractOptions()
    render: RenderOptions = RenderOptions()
    archive: ArchiveOptions = ArchiveOptions()
    search: SearchOptions = SearchOptions()
    discovery: DiscoveryOptions = DiscoveryOptions()
    websub: WebsubOptions = WebsubOptions()
    webmention: WebmentionOptions = WebmentionOptions()
    console: ConsoleOptions = ConsoleOptions()
    state: StateOptions = StateOptions()
    crawl: CrawlOptions = CrawlOptions()
    cluster: ClusterOptions = ClusterOptions()
    watch: WatchOptions = WatchOptions()
    logs: LogsOptions = LogsOptions()
    components: ComponentsOptions = ComponentsOptions()
    progress: ProgressOptions = ProgressOptions()

    _origins: dict[str, str] = {}

    def origin(self, key: str) -> str:
        """Return the origin of the value of `section.key`: `default`, a file with its line, or an option."""
        return self._origins.get(key, "default")

    @property
    def origins(self) -> dict[str, str]:
        """Where each value came from, by dotted key: a copy."""
        return dict(self._origins)

    def value(self, key: str) -> object:
        """Return the value of `section.key`."""
        section, _, name = key.partition(".")
        options = getattr(self, section)
        return rules_of(options).get(name) if isinstance(options, NamedSection) else getattr(options, name)

    def keys_of(self, section: str) -> list[str]:
        """Return the keys of a section: those that all configurations have, or the names of its rules."""
        options = getattr(self, section)
        return list(rules_of(options) if isinstance(options, NamedSection) else keys_of(sections()[section]))

    def all_keys(self) -> list[str]:
        """Return every dotted key of this configuration: those that all have, and those of tables with names."""
        named = [name for name, kind in sections().items() if issubclass(kind, NamedSection)]
        return [*keys(), *(f"{section}.{name}" for section in named for name in self.keys_of(section))]

    def with_values(self, values: Mapping[str, object]) -> Self:
        """Return the same configuration with other values, by dotted key. They are not checked."""
        changed: dict[str, dict[str, object]] = {}
        for key, value in values.items():
            section, _, name = key.partition(".")
            changed.setdefault(section, {})[name] = value
        return replace(self, **{section: replace(getattr(self, section), **one) for section, one in changed.items()})

    def with_origins(self, origins: dict[str, str]) -> Self:
        """Return the same configuration, its values coming from where `origins` says, by dotted key."""
        return replace(self, _origins=dict(origins))


def conflicts(config: Config) -> Iterator[Mistake]:
    """Yield what in one section does not go with another one."""
    if config.identity.send_from and not _MAIL(config.operator.contact):
        yield Mistake(
            ("identity", "send_from"), "operator.contact is no mail address; set one, or send_from = false", True
        )
    split = ("url", "split_sites")
    schemes = config.components.protocols
    if config.url.split_sites and config.state.hosts_store:
        yield Mistake(split, "state.hosts_store keeps hosts by their site; leave out one of the two", None)
    for site in config.url.split_sites:
        pages = ((name, absolute(rule.url) or "") for name, rule in config.login.rules.items())
        logins = [name for name, page in pages if site_of(host_of(page) or "") == site]
        if config.cookies.is_on or logins:
            keys = f"login.{logins[0]}" if logins else "cookies"
            yield Mistake(split, f"{site} has one jar of cookies ({keys}); leave out one of the two", None)
    if config.proxies.urls and (config.fetch.proxy or any(rule.proxy for rule in config.request.rules.values())):
        says = "fetch.proxy, and proxy in [request], exclude a pool; add these proxies to it, with labels and places"
        yield Mistake(("proxies", "urls"), says, None)
    known = tuple(dict.fromkeys((*SCHEMES, *schemes)))
    for scheme in config.scope.schemes:
        if scheme not in known:
            hint = nearest(scheme, known, f"known are {', '.join(known)}, and those that components.protocols adds")
            yield Mistake(("scope", "schemes"), f"no scheme is called {scheme!r}{hint}", None)
    if not (config.archive.store_keep_warc or config.archive.store or config.state.checkpoint_uri):
        says = "no store has the WARC files; name one in archive.store or state.checkpoint_uri, or leave out the key"
        yield Mistake(("archive", "store_keep_warc"), says, False)


@cache
def sections() -> Mapping[str, type[Section]]:
    """Return the class of each section, in the order of the file."""
    return {name: one.type for name, one in keys_of(Config).items()}


@cache
def keys() -> tuple[str, ...]:
    """Return every dotted key there is, in the order of the file."""
    return tuple(f"{name}.{key}" for name, section in sections().items() for key in keys_of(section))


def keys_named(name: str) -> list[str]:
    """Return every dotted key whose name in its section is `name`."""
    return [key for key in keys() if key.partition(".")[2] == name]


def key_of(dotted: str) -> Key:
    """Return how a dotted key is declared; where keys are names, how the rules of the section are."""
    section, _, name = dotted.partition(".")
    model = sections().get(section, Section)
    one = rules_key(model) if issubclass(model, NamedSection) else keys_of(model).get(name)
    return one.key if one is not None else Key()
