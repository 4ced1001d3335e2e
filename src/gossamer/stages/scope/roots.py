"""Roots: converts typed seeds to addresses, or explains faults; keeps what they and redirects bring into scope."""

import re
from collections.abc import Sequence
from typing import Final
from urllib.parse import unquote

import msgspec

from gossamer.model.errors import ConfigError
from gossamer.model.links import NOT_SEED, SEED_ARGUMENT
from gossamer.options import nearest
from gossamer.stages.scope.options import Mode, SeedRedirects
from gossamer.url.canonical import Canonicalizer
from gossamer.url.join import absolute
from gossamer.url.name import host_of
from gossamer.url.site import site_of
from gossamer.url.url import Url, drop_user_info, is_default_port, split_authority

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(?!\d)").match
"""Matches a scheme; the one letter of `C:\\` is a drive."""
_LOCAL = re.compile(r"localhost\b|\d+(\.\d+){3}\b|\[").match
_COLONLESS = re.compile("(https?|ftps?)[:/]+(.*)", re.IGNORECASE).fullmatch
_SEVERAL = re.compile(r"([\s,;|])https?://", re.IGNORECASE).search
"""Finds where a second address begins."""
_WITHIN = re.compile(r"https?(?:://|%3A%2F%2F)[^\s<>\"'()\[\]]++", re.IGNORECASE).search
"""Finds an address behind words or brackets."""
_EXAMPLE = "give an address such as https://example.org/"
_HABITS = {
    re.compile(r"\d?>|[|&;<\\]+\Z|\$"):
        "this is for a shell, and was not read by one: leave it out, or write it without quotation marks",
    re.compile(r"\.{1,2}\Z|\.{0,2}/(?!/)|~|[A-Za-z]:[\\/]|\\"): f"a path cannot be crawled: {_EXAMPLE}",
    re.compile(r"-\Z"): "to read seeds from standard input, write --seeds -",
    re.compile(r"[+-]"):
        f"write options as words of their own, and filters as --include RE and --exclude RE; {_EXAMPLE}",
    re.compile(r"[a-z_]+\.[\w.]+="): "a key is set by --set, which takes one: --set {}",
    re.compile(r"[^\s/@]++@[^\s/@]++\Z"): "an address of e-mail says who you are: --contact {}",
}  # fmt: skip
"""What begins like something else than an address, and what to write."""
_QUOTES = "\"'`<>\u00ab\u00bb\u2018\u2019\u201a\u201c\u201d\u201e"
_AROUND = "\ufeff \t\r\n\f\v\u00a0\u200b\u200e\u200f\u2028\u2060"
"""Characters that files and web pages leave around a copied address."""
_LONE_SURROGATE = re.compile("[\ud800-\udfff]").search
_SHOWN_CHARACTERS_MAX = 200
_LISTS = (".txt", ".csv", ".tsv")
"""Endings of files that list seeds."""
_FILES = (".md", ".rst", ".xml", ".html", ".htm", ".json", ".py", ".sh", ".rs", ".pl", ".zip", ".pdf", ".toml", ".yml")
"""Endings of other files; some are top-level domains too."""
_ON_REQUEST = frozenset(("ftp", "ftps", "gopher", "file"))
"""Schemes that have a protocol module and are visited if the operator enables them."""


def seed_url(text: str, schemes: Sequence[str] | None = ("http", "https"), what: str = "seed") -> str:
    """Return a seed as an absolute address without fragment, user name and password, which are never sent in it.

    Raises ConfigError with one line that says how to fix it.

    `schemes` are those that can be visited; None: any. A byte order mark, as joined files contain, is removed. `what`
    names the text in messages.
    """
    text = drop_user_info(text.strip(_AROUND))
    if not text:
        raise ConfigError(f"an empty {what}: {_EXAMPLE}")
    scheme = _SCHEME(text)
    authority = text[scheme.end() if scheme is not None else 0 :].lstrip("/").partition("/")[0]
    if "*" in authority and text[0] not in "+-":
        raise ConfigError(
            f"the {what} {_printable(text)} has a * in its host; a {what} is one address: name that of one host, and "
            "visit all hosts of its domain with --scope domain"
        )
    if scheme is None:
        raise ConfigError(f"the {what} {_printable(text)} has no scheme; {_suggestion(text)}")
    if several := _SEVERAL(text.partition("?")[0]):
        raise ConfigError(
            f"the {what} {_printable(text)} holds two addresses, with {several[1]!r} between them; give them as two"
        )
    if schemes is not None and scheme[1].lower() not in schemes:
        hint = _hint(scheme[1].lower(), text[scheme.end() :], schemes)
        raise ConfigError(f"the {what} {_printable(text)} has the scheme {scheme[1].lower()!r}{hint}")
    if _LONE_SURROGATE(text):  # What Python makes of bytes that are no text in the locale.
        raise ConfigError(
            f"the {what} {_printable(text)} is not UTF-8; escape its bytes, as in %C3%A9, or use a UTF-8 locale"
        )
    url = absolute(text)
    if url is None or host_of(url, schemes) is None:
        raise ConfigError(
            f"the {what} {_printable(text)} is not an address: its host or port is not valid; check it for misprints"
        )
    return url


def _printable(text: str) -> str:
    return ascii(text[:_SHOWN_CHARACTERS_MAX])


def _hint(scheme: str, rest: str, schemes: Sequence[str]) -> str:
    if scheme in _ON_REQUEST:
        wanted = ",".join(f'"{name}"' for name in (*schemes, scheme))
        return f"; --set 'scope.schemes=[{wanted}]' has it visited"
    others = f"those visited are {', '.join(schemes)} (scope.schemes)"
    if within := _WITHIN(rest):
        return f"; did you mean {within[0]} ?"
    if scheme in ("feed", "webcal", "itpc", "pcast"):  # Of readers of feeds, in place of the address's own.
        return f"; did you mean https:{rest} ?"
    return nearest(scheme.replace("xx", "tt"), schemes, others, lambda one: f"{one}:{rest} ")


def _suggestion(text: str) -> str:
    for pattern, said in _HABITS.items():
        if pattern.match(text):
            return said.format(text)
    bare = text.strip(_QUOTES)
    if text[0] in _QUOTES and bare and bare.isprintable():
        return f"leave the quotation marks out: {bare}"
    if text.endswith(_LISTS) and "/" not in text and text.isprintable():
        return f"to read seeds from a file, write --seeds {text.removeprefix('@')}"
    if within := _WITHIN(text):
        return f"did you mean {unquote(within[0])} ?"
    colonless = _COLONLESS(text)
    if colonless:
        scheme, rest = colonless.groups()
    else:
        rest = text.lstrip(":/")
        scheme = "http" if _LOCAL(rest) else "https"
    whole = absolute(f"{scheme.lower()}://{rest}")
    if whole and text.lower().endswith(_FILES) and "/" not in text:
        return f"there is no such file; for a page give its whole address, and for a host {whole}"
    if whole and rest.strip("/").isalpha() and not _LOCAL(rest):
        return f"{_EXAMPLE}, and for a host of your network {whole}"
    return f"did you mean {whole} ?" if whole else _EXAMPLE


STARTS_MAX: Final = 16_384
"""Starts of addresses (`https://host:port`) whose result is cached: about 3 MB."""
START_BYTES_MAX: Final = 300
"""Longer starts are not cached."""


class Dump(msgspec.Struct, frozen=True, array_like=True):
    """The stored form of roots."""

    mode: str
    sites: list[str]
    hosts: list[str]
    prefixes: list[str]


class Roots:
    """The roots of one crawl. A URL is in scope when its site, its host or a directory above it is a root.

    `mode` says what a seed makes a root: `prefix` its directory (all up to the last slash of its path), `host` its
    host, `domain` its registrable domain; with `any` everything is in scope. The scheme does not matter, nor do the
    default ports of http and https; any other port makes another host. A lookup costs the same for one root and for a
    million (about 150 bytes each).
    """

    def __init__(self, mode: Mode, seed_redirects: SeedRedirects = "page") -> None:
        self.mode: Mode = mode
        self._seed_redirects = seed_redirects
        self._sites: set[str] = set()
        self._hosts: set[str] = set()
        self._prefixes: set[str] = set()
        self._starts: dict[str, bool] = {}
        self._sites_of_roots: set[str] | None = None
        """The site of each root; None until it is needed, since it costs 1 µs and 100 bytes a root."""
        self._with_prefix: set[str] | None = None
        """Host and port of each prefix; None until it is needed."""
        self._new = Dump(mode, [], [], [])
        # Directories are compared as in RFC 3986, independent of the operator's canonical rules: with
        # drop_trailing_slash the key of /a/ would turn the directory of a seed into its parent.
        self._canonicalizer = Canonicalizer()

    def add_seed(self, url: Url) -> None:
        """Bring a seed's directory, host or domain into scope."""
        self._add(url, whole=True)

    def contains(self, url: Url) -> bool:
        """Return whether a URL is in scope. 0.2 µs; if there are prefixes, 1 µs more and 0.2 µs per directory."""
        text = url.text
        known = self._starts.get(text[: text.find("/", 8)])
        if known is None:
            known = self._judge(url)
        return known or (bool(self._prefixes) and bool(self._prefix_of(url)))

    def touches(self, url: Url) -> bool:
        """Return whether any page of a URL's host and port can be in scope."""
        if self._judge(url):
            return True
        if self._with_prefix is None:
            self._with_prefix = {prefix.partition("/")[0] for prefix in self._prefixes}
        return authority_of(url) in self._with_prefix

    def widen(self, seed: Url, target: Url, kind: int) -> str | None:
        """Widen the scope to the target of the redirect of a seed, or of a page of a host that has moved (`is_moved`).
        Return a sentence for people, or None if nothing changed.

        Within the seed's site the target counts as a seed, also where the redirects lead over another site. Another
        site is only added if `seed_redirects` is `site`: for a seed that was given as an argument as if the target were
        one, for a seed from a file only the target's directory, since an expired domain among a million seeds must not
        bring in the whole shop that it redirects to.
        """
        if self.contains(target):
            return None
        site = _site_of_key(target)
        is_own = site == _site_of_key(seed) if self.contains(seed) else self._has_site(site)
        if not is_own and self._seed_redirects == "page":
            return None
        whole = is_own or kind == SEED_ARGUMENT
        directory = ""
        if kind == NOT_SEED and self.mode == "prefix":
            directory = self._prefix_of(seed).removeprefix(authority_of(seed))
        self._add(target, directory, whole=whole)
        directory = directory or directory_of(target.text)
        what = target.origin + ("/" if whole and self.mode != "prefix" else directory)
        if whole and self.mode == "domain":
            what = f"the domain {target.site}"
        return f"{what} is now in scope: {'the seed ' if kind else ''}{seed.text} leads there"

    def dump(self) -> bytes:
        """Return all roots, for the first commit. The size grows with the seeds; later commits use `take_new`."""
        whole = Dump(self.mode, sorted(self._sites), sorted(self._hosts), sorted(self._prefixes))
        return msgspec.msgpack.encode(whole)

    def take_new(self) -> bytes | None:
        """Return the roots added since the last call, None if there are none. `load` accepts these in any order."""
        new = self._new
        if not (new.sites or new.hosts or new.prefixes):
            return None
        self._new = Dump(self.mode, [], [], [])
        return msgspec.msgpack.encode(new)

    def absorb(self, dumped: bytes) -> None:
        """Add the roots of another shard's `dump`, as roots that are new here."""
        was = msgspec.msgpack.decode(dumped, type=Dump)
        self.load(dumped)
        new = self._new
        self._new = Dump(self.mode, [*new.sites, *was.sites], [*new.hosts, *was.hosts], [*new.prefixes, *was.prefixes])

    def load(self, dumped: bytes) -> None:
        """Add the roots that `dump` or `take_new` returned. Raises ConfigError if they have another mode."""
        self._starts.clear()
        self._sites_of_roots = self._with_prefix = None
        was = msgspec.msgpack.decode(dumped, type=Dump)
        if was.mode != self.mode:
            raise ConfigError(f"this crawl was begun with scope {was.mode!r} and cannot go on with {self.mode!r}")
        self._sites.update(was.sites)
        self._hosts.update(was.hosts)
        self._prefixes.update(was.prefixes)

    def _has_site(self, site: str) -> bool:
        if self._sites_of_roots is None:
            places = (*self._hosts, *self._prefixes)
            authorities = {place.partition("/")[0] for place in places}
            hosts = {authority if authority[-1:] == "]" else authority.partition(":")[0] for authority in authorities}
            self._sites_of_roots = self._sites | {site_of(host) for host in hosts}
        return site in self._sites_of_roots

    def _judge(self, url: Url) -> bool:
        """Return whether a URL's whole site or host is in scope; cached for all addresses with the same start."""
        whole = self.mode == "any" or url.site in self._sites or authority_of(url) in self._hosts
        end = url.text.find("/", 8)
        # An http address always has a path, so this slash ends its authority.
        if url.text.startswith(("http://", "https://")) and 0 < end <= START_BYTES_MAX:
            if len(self._starts) >= STARTS_MAX:
                self._starts.clear()
            self._starts[url.text[:end]] = whole
        return whole

    def _add(self, url: Url, directory: str = "", *, whole: bool) -> None:
        if self.mode == "any":
            return
        self._starts.clear()
        if self._sites_of_roots is not None:
            self._sites_of_roots.add(url.site)
        if whole and self.mode == "domain":
            _remember(url.site, self._sites, self._new.sites)
        elif whole and self.mode == "host":
            _remember(authority_of(url), self._hosts, self._new.hosts)
        else:
            if self._with_prefix is not None:
                self._with_prefix.add(authority_of(url))
            _remember(authority_of(url) + (directory or self._directory(url)), self._prefixes, self._new.prefixes)

    def _directory(self, url: Url) -> str:
        return directory_of(self._canonicalizer.key(url.text))

    def _prefix_of(self, url: Url) -> str:
        """Return the longest prefix of a URL, without scheme; empty: none."""
        directory = authority_of(url) + self._directory(url)
        end = len(directory)
        while end > 0 and directory[:end] not in self._prefixes:
            end = directory.rfind("/", 0, end - 1) + 1
        return directory[:end]


def is_moved(url: Url, target: Url) -> bool:
    """Return whether an address is that of a page on the host with `www.`, or without: its whole site has moved."""
    places = [one.text.partition("://")[2].removeprefix("www.") for one in (url, target)]
    return places[0] == places[1] and url.site == target.site and url.host != target.host


def _site_of_key(url: Url) -> str:
    """Return the site by which a URL is compared: the operator's rules may equate hosts of several sites."""
    return url.site if url.key == url.text else site_of(host_of(url.key, None) or "")


def authority_of(url: Url) -> str:
    """Return host and port, without a port that is the default of http, https or the scheme."""
    text = url.text
    start = text.index("://") + 3
    authority = text[start : text.find("/", start)]
    if authority == url.host:
        return authority
    port = split_authority(_path_start(text)[0])[2]
    is_default = port is None or any(is_default_port(scheme, port) for scheme in ("http", "https", url.scheme))
    return url.host if is_default else f"{url.host}:{port}"


def directory_of(text: str) -> str:
    """Return the path of an address up to its last slash, beginning and ending with one."""
    path = _path_start(text)[1]
    return path[: path.rfind("/") + 1] or "/"


def _path_start(text: str) -> tuple[str, str]:
    rest = text.partition("#")[0].partition("?")[0]
    authority, slash, path = rest[rest.index("://") + 3 :].partition("/")
    return authority, slash + path


def _remember(root: str, roots: set[str], new: list[str]) -> None:
    if root not in roots:
        roots.add(root)
        new.append(root)
