"""Seeds: reads and checks the start URLs and segments, and requires a contact for those on public servers."""

import ipaddress
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from importlib import import_module
from itertools import groupby
from pathlib import Path
from urllib.parse import quote

from msgspec.structs import replace

from gossamer.config.lists import lines_of
from gossamer.config.sections import Config, SeedsOptions
from gossamer.model.errors import ConfigError
from gossamer.model.words import shell_word
from gossamer.stages.scope.lists import site_of_line
from gossamer.stages.scope.roots import seed_url
from gossamer.url.name import host_of
from gossamer.url.url import Url
from gossamer.world.inputs import read_input

BULLETS = ("- ", "* ", "+ ")
PAIRS = {"<": ">", '"': '"', "'": "'"}
_PATTERN = re.compile(r"\{[\w./-]*+,[\w./,-]*+\}|\{\w++\.\.\w++\}|\[\w++-\w++(?::\d++)?\]|(?<=/)\*\Z").search
"""Finds what curl or a shell makes several addresses of."""
_COPIED = re.compile(r"&amp;|[,;\"'<>\u201c\u201d\u2026]\Z").search
"""Finds what a text or the source of a page adds to an address."""
_BRACKET = re.compile(r"[)\]](?=\.?\Z)").search
_IMPORT = "gossamer import {} -o DIR makes a crawl of it"
_SERVE = "serve its folder, as with python -m http.server, and give that address"
_OTHERS = {
    **dict.fromkeys((".har", ".wacz"), _IMPORT), ".toml": "if it is a configuration, write -c {}",
    **dict.fromkeys((".html", ".htm", ".xhtml", ".md"), _SERVE),
}  # fmt: skip
"""What to do with files that are no seeds, by their ending."""
_LINK = re.compile(r"\[[^\[\]]*+\]\([^()\s]++\)").fullmatch
"""A link in Markdown."""


def seed(text: str, what: str = "seed") -> str:
    """Return typed text as an absolute URL of any scheme; which schemes are visited, the crawl decides. `what` names
    the text in errors. Raises ConfigError: it is not a URL; the line says what to write instead.
    """
    return seed_url(text, None, what)


def file_seeds(path: Path, schemes: Sequence[str], note: Callable[[str], None] = lambda _: None) -> Iterator[str]:
    """Yield the seeds of a file, checked one by one; memory does not grow. The file has one URL a line, alone or before
    a tab and a label, and `#` begins a comment; or it is of a format of `config.seedfiles`, where addresses that are no
    seeds are left out. `note` is called with a line about damaged parts of such a file. Raises ConfigError: the file
    cannot be read, or a line, whose number is named, is not a seed; or a file of another format has no seed.
    """
    from gossamer.config.seedfiles import FORMATS, addresses, form_of  # noqa: PLC0415 - most crawls have their seeds as arguments

    if _OTHERS.get(path.suffix.lower()) == _IMPORT:
        raise ConfigError(f"{path} is an archive: {_IMPORT.format(shell_word(path))}")
    form = form_of(path) if path.is_file() else "lines"
    if form != "lines":
        is_empty = True
        for address in addresses(path, form, note):
            with suppress(ConfigError):
                yield seed_url(address, schemes)
                is_empty = False
        if is_empty:
            raise ConfigError(f"no seeds in {path}: it is {FORMATS[form]}; see that it is whole and what you meant")
        return
    for number, text in lines_of(path, "seeds"):
        try:
            yield seed_url(_address_of(text), schemes)
        except ConfigError as error:
            hint = str(error)
            if text.partition(",")[0].strip().isdecimal():
                hint = f"{text!r} looks like a rank and a domain; write --domains {path}"
            elif text.startswith(("<?xml", "<rss", "<feed")):
                hint = "this is XML, and not a sitemap; to read a feed, give its address as a seed"
            elif path.suffix.lower() in (".toml", ".yaml", ".yml"):
                hint = "a file of seeds has one URL a line; a configuration is TOML, and read by -c FILE"
            raise ConfigError(f"{path} line {number}: {hint}") from error


def _address_of(line: str) -> str:
    """Return the URL of a line without bullet, quotes, or label after a tab. Commas stay: URLs may contain them."""
    text = line.strip("\ufeff \t")
    if text[:2] in BULLETS:
        text = text[2:].lstrip()
    if _LINK(text):
        return text[text.index("](") + 2 : -1]
    if text[:1] in PAIRS and (end := text.find(PAIRS[text[0]], 1)) > 0:
        return text[1:end]
    return text.partition("\t")[0]


def domain_seeds(path: Path) -> Iterator[str]:
    """Yield the front pages of a file of domains, each stripped of its subdomains by the list of public suffixes.

    A line is a domain, perhaps with a port, or of a list with ranks: numbers, a domain, and more columns, after commas.
    The first line of such a list may be its header. Equal ones in a row come once. Raises ConfigError: the file cannot
    be read, or a line is not a domain; the line number is named.
    """
    before = ""
    for number, text in lines_of(path, "domains"):
        columns = [column.strip(' "') for column in text.split(",")]
        if columns[1:] and not columns[0].isdecimal() and number == 1:
            continue
        domain = text.strip()
        if columns[0].isdecimal():
            domain = next((column for column in columns if not column.isdecimal()), "")
        name, colon, port = domain.partition(":")
        try:
            site = site_of_line(name if port.isdecimal() or not colon else domain)
        except ConfigError as error:
            raise ConfigError(f"{path} line {number}: {error}") from error
        if site + colon + port != before:
            before = site + colon + port
            yield f"http://{before}/"


def check_seeds(config: Config) -> None:
    """Check every seed before anything starts: it is a URL, it may be visited, and public servers get a contact.
    Raises ConfigError: there is no seed, or one is wrong.
    """
    has_segments = _has_segments(config.seeds)
    has_seeds = check_addresses(config, all_seeds(config)) > 0
    if config.crawl.mode == "offline" and not (has_seeds or has_segments):
        raise ConfigError("no segment; name one (--segment FILE), or where they appear (--watch DIR)")
    if not has_seeds and not has_segments:
        raise ConfigError("no seeds; name a URL (gossamer crawl https://example.org/) or a file of them (--seeds FILE)")


def local_hosts(config: Config) -> frozenset[str]:
    """Return the names that the configured hosts file has at private addresses."""
    return local_names(Path(config.resolve.hosts_file)) if config.resolve.hosts_file else frozenset()


def check_addresses(config: Config, addresses: Iterable[str], local: frozenset[str] | None = None) -> int:
    """Check seeds as `check_seeds` does, and return how many there are. `local`: the result of `local_hosts`, if known.
    Raises ConfigError: one of them may not be visited.
    """
    local = local_hosts(config) if local is None else local
    count = 0
    for address in addresses:
        count += 1
        host = (host_of(address, None) or "").strip("[]")
        private = is_private(host) or host in local
        if private and not config.resolve.allow_private:
            raise ConfigError(f"seed {address} is at a private address; add --allow-private to visit those")
        if not private and not config.operator.contact:
            raise ConfigError(
                f"seed {address} is on the public web, where crawlers say who they are: "
                "add --contact with a URL or mail address of yours"
            )
    return count


def all_seeds(config: Config) -> Iterable[str]:
    """Yield the seeds of arguments and configuration, then those of the file, each checked."""
    for text in config.seeds.urls:
        yield _argument_seed(text, config.scope.schemes)
    if config.seeds.file:
        yield from file_seeds(Path(config.seeds.file), config.scope.schemes)
    if config.seeds.requests_file:
        # Imported here: other crawls have no use for it.
        requests = import_module("gossamer.features.requests")
        for address, _ in requests.read_requests(Path(config.seeds.requests_file), config.scope.schemes):
            yield requests.request_url(address)
    if config.seeds.domains_file:
        yield from domain_seeds(Path(config.seeds.domains_file))


def _argument_seed(text: str, schemes: Sequence[str]) -> str:
    """Return a seed that a person typed. Files may hold addresses with patterns and commas, which servers have."""
    try:
        url = seed_url(text, schemes)
    except ConfigError as error:
        # Those of Path raise OSError for a text that is too long for a name.
        what = "file" if os.path.isfile(text) else "directory" if os.path.isdir(text) else ""  # noqa: PTH112, PTH113
        if what:
            ending = os.path.splitext(text)[1].lower()  # noqa: PTH122
            how = _OTHERS.get(ending, _SERVE if what == "directory" else "if it lists seeds, write --seeds {}")
            if os.path.isfile(f"{text}/crawl.toml"):  # noqa: PTH113
                how = "gossamer resume {} continues the crawl in it"
            raise ConfigError(f"{text!r} is a {what}, not a URL; {how.format(shell_word(text))}") from error
        raise
    typed = text.strip()
    # Addresses of encyclopedias end with a bracket that they open.
    found = _PATTERN(typed) or _COPIED(typed) or (None if "(" in typed or "[" in typed else _BRACKET(typed))
    if found is None:
        return url
    how = f"and {found[0]} stands for several in curl and shells: give each of them"
    if found[0][0] == "*":
        how = "and the pages that it links to are found: leave the * out"
    elif found[0] == "&amp;":
        how = "and &amp; is an & in the source of a page: write that"
    elif len(found[0]) == 1:
        how = f"and {found[0]} at its end is often of the text around it: leave it out"
    raise ConfigError(f"the seed {typed!r} is one address, {how}, or write {quote(found[0], '')} for a literal one")


def _has_segments(seeds: SeedsOptions) -> bool:
    for name in seeds.segments:
        if not Path(name).is_file():
            raise ConfigError(f"there is no segment {name}; `gossamer segment build` makes one")
    if seeds.watch_directory and not Path(seeds.watch_directory).is_dir():
        raise ConfigError(f"no directory {seeds.watch_directory} to watch; make it, or name another with --watch")
    return bool(seeds.segments or seeds.watch_directory)


def is_private(host: str) -> bool:
    """Return whether a host is, by its name alone, no address of the public Internet."""
    if host[-1:].isdecimal() or ":" in host:  # Addresses end so; to look at a name as one takes 3 µs.
        with suppress(ValueError):
            return not ipaddress.ip_address(host).is_global
    return host == "localhost" or host.endswith(".localhost")  # RFC 6761, section 6.3


def local_names(file: Path) -> frozenset[str]:
    """Return the names that a hosts file gives private addresses only. Raises ConfigError: it cannot be read."""
    if file.is_fifo():
        raise ConfigError(f"{file} is a pipe, and hosts are read more than once; name a file that holds them")
    try:
        lines = read_input(file).decode("utf-8", "replace").splitlines()
    except OSError as error:
        raise ConfigError(f"cannot read hosts from {file}: {error.strerror}; name a file that you can read") from error
    private: set[str] = set()
    public: set[str] = set()
    for line in lines:
        address, *names = line.partition("#")[0].split() or [""]
        found = private if is_private(address) else public
        found.update(name.lower().rstrip(".") for name in names)
    return frozenset(private - public)


class Visitable:
    """Says which URLs of a segment this configuration may visit: public ones with a contact, private ones if the
    operator allows them. The guard of addresses checks again, so this one can be fast: 0.3 µs.
    """

    def __init__(self, config: Config) -> None:
        self._named = bool(config.operator.contact)
        self._private = config.resolve.allow_private
        self._schemes = tuple(f"{scheme}://" for scheme in config.scope.schemes)
        self._local = local_names(Path(config.resolve.hosts_file)) if config.resolve.hosts_file else frozenset[str]()

    def which(self, urls: Sequence[Url | None]) -> list[bool]:
        """Return, for each address, whether it may be visited; None may not."""
        visitable: list[bool] = []
        for host, group in groupby(urls, lambda url: "" if url is None else url.host):
            may = self._private if is_private(host) or host in self._local else self._named
            visitable += [may and url is not None and url.text.startswith(self._schemes) for url in group]
        return visitable


def with_segments(config: Config, file: Path | None, listed: Sequence[str]) -> Config:
    """Return the configuration with paths among its seeds as what they are for an offline crawl: segments.

    Where there are segments, seeds that the configuration's `file` names (`listed` are its URLs) are the builder's: the
    file serves both, and each round would fetch them again. Raises ConfigError: a batch crawl is given a segment.
    """
    seeds = config.seeds
    paths = [text for text in seeds.urls if "://" not in text]
    if config.crawl.mode != "offline":
        given = next((text for text in paths if Path(text).suffix in {".segment", ".parquet"}), "")
        given = given or (seeds.segments[0] if seeds.segments else seeds.watch_directory)
        if given:
            raise ConfigError(f"{given} is for an offline crawl: add --mode offline")
        return config
    if config.frontier.strategy != "sweep":
        raise ConfigError("an offline crawl cannot walk; leave frontier.strategy out, or crawl.mode")
    origins = config.origins
    update = dict[str, object]()
    if paths:
        update["segments"] = (*seeds.segments, *(str(Path(path).absolute()) for path in paths))
        origins["seeds.segments"] = "arguments"
    if update or seeds.segments or seeds.watch_directory:
        update["urls"] = tuple(text for text in seeds.urls if "://" in text and text not in listed)
        for name in ("file", "domains_file"):
            if file is not None and config.origin(f"seeds.{name}").startswith(str(file)):
                update[name] = ""
    return replace(config, seeds=replace(seeds, **update)).with_origins(origins)
