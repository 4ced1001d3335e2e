"""Rules: headers, credentials, certificates and proxies of requests to certain hosts and paths."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import quote

from gossamer.model.errors import ConfigError
from gossamer.stages.fetch.certificates import check_certificate
from gossamer.stages.fetch.credentials import OPEN_HEADERS, is_credential, proxy_of
from gossamer.stages.fetch.options import RequestRule, Route, where_of
from gossamer.url.url import DEFAULT_PORTS, split_authority

if TYPE_CHECKING:
    from gossamer.stages.fetch.digest import Digests

ORIGINS_MAX: Final = 4_096
"""Origins whose rules are cached."""


class Rule(NamedTuple):
    """The merged rule for a request: each value is from the most specific rule that has it."""

    headers: tuple[tuple[str, str], ...] = ()
    query: tuple[tuple[str, str], ...] = ()
    digest: tuple[str, str] | None = None
    """User name and password."""
    route: Route = Route()

    @property
    def secret(self) -> frozenset[str]:
        """Names of the headers that no output shows."""
        return frozenset(name for name, _ in self.headers if name.lower() not in OPEN_HEADERS)

    @property
    def authenticates(self) -> bool:
        """Whether requests by this rule carry credentials."""
        return bool(self.query or self.route.certificate) or any(is_credential(name) for name, _ in self.headers)

    def add_query(self, url: str, *, shown: str = "") -> str:
        """Return the URL that is sent, with the added parameters; `shown`, if given, replaces their values."""
        if not self.query:
            return url
        added = "&".join(f"{quote(name, safe='')}={shown or quote(value, safe='')}" for name, value in self.query)
        base, hash_mark, fragment = url.partition("#")
        return f"{base}{'&' if '?' in base else '?'}{added}{hash_mark}{fragment}"

    def strip(self, text: str) -> str:
        """Return a header's value without the parameters that `add_query` adds, which a redirect may repeat."""
        for name, value in self.query:
            for form in {quote(value, safe=""), value}:
                pair = f"{quote(name, safe='')}={form}"
                text = text.replace(f"?{pair}&", "?").replace(f"&{pair}", "").replace(f"?{pair}", "")
        return text


class _Place(NamedTuple):
    """The parts of a rule's place, and the rule for requests there: over TLS, and over a plain connection."""

    scheme: str
    below: bool
    host: str
    port: str
    path: str
    secure: Rule
    plain: Rule

    def covers(self, scheme: str, host: str, port: str) -> bool:
        if self.scheme and self.scheme != scheme:
            return False
        if port != (self.port or str(DEFAULT_PORTS[scheme])):
            return False
        return host == self.host or (self.below and host.endswith("." + self.host))

    def begins(self, path: str) -> bool:
        """Return whether a path with its query is at or below that of the rule."""
        if not path.startswith(self.path):
            return False
        return self.path.endswith("/") or path[len(self.path) : len(self.path) + 1] in ("", "/", "?")


class RequestRules:
    """Finds the rule of a request. About 1 µs."""

    def __init__(self, rules: Mapping[str, RequestRule], product_token: str, digests: Digests | None = None) -> None:
        """`rules` are by place, with their secrets; `digests` are for rules with digest authentication. Raises
        ConfigError: a User-Agent lacks the product token; a proxy or a client certificate is not valid.
        """
        self._places = sorted(
            (_place(where, rule, product_token) for where, rule in rules.items()),
            key=lambda place: (not place.below, len(place.host), len(place.path)),
        )
        self.digests = digests
        self._by_origin: dict[tuple[str, str, str], list[_Place]] = {}
        self._merged: dict[tuple[Rule, ...], Rule] = {}

    def __iter__(self) -> Iterator[Rule]:
        """Yield the rules as they were written."""
        return iter([place.secure for place in self._places])

    def of(self, url: str) -> Rule | None:
        """Return the rule of an http or https URL; None if there is none."""
        scheme, _, rest = url.partition("://")
        scheme = scheme.lower()
        end = min((at for mark in "/?#" if (at := rest.find(mark)) >= 0), default=len(rest))
        _, host, port = split_authority(rest[:end])
        origin = scheme, host.lower().removesuffix("."), port or str(DEFAULT_PORTS.get(scheme, ""))
        places = self._by_origin.get(origin)
        if places is None:
            places = [place for place in self._places if scheme in ("http", "https") and place.covers(*origin)]
            if len(self._by_origin) >= ORIGINS_MAX:
                self._by_origin.clear()
            self._by_origin[origin] = places
        path = rest[end:].partition("#")[0]
        path = path if path.startswith("/") else "/" + path
        held = tuple(
            place.secure if scheme == "https" or place.scheme else place.plain for place in places if place.begins(path)
        )
        if len(held) < 2:
            return held[0] if held else None
        merged = self._merged.get(held)
        if merged is None:
            merged = self._merged[held] = _merge(held)
        return merged


def _place(where: str, rule: RequestRule, product_token: str) -> _Place:
    match = where_of(where)
    for name, value in rule.headers.items():
        if name.lower() == "user-agent" and product_token.lower() not in value.lower():
            raise ConfigError(
                f'request."{where}": User-Agent must contain {product_token!r}: robots.txt is obeyed under that name'
            )
    open_headers = tuple((name, value) for name, value in rule.headers.items() if name.lower() in OPEN_HEADERS)
    headers = tuple(rule.headers.items())
    if rule.basic is not None:
        pair = f"{rule.basic.user}:{rule.basic.password}".encode()
        headers += (("Authorization", f"Basic {b64encode(pair).decode()}"),)
    if rule.bearer:
        headers += (("Authorization", f"Bearer {rule.bearer}"),)
    proxy_of(rule.proxy, f'request."{where}": proxy')
    if rule.certificate or rule.certificate_key:
        check_certificate(where, rule.certificate, rule.certificate_key)
    route = Route(rule.proxy, rule.certificate, rule.certificate_key)
    digest = (rule.digest.user, rule.digest.password) if rule.digest is not None else None
    secure = Rule(headers, tuple(rule.query.items()), digest, route)
    plain = Rule(open_headers, route=Route(rule.proxy))
    path = match["path"] or "/"
    return _Place(
        match["scheme"] or "", bool(match["below"]), match["host"], match["port"] or "", path, secure, plain
    )  # fmt: skip


def _merge(rules: tuple[Rule, ...]) -> Rule:
    """Merge rules, the most specific last. One kind of authentication replaces another."""
    headers: dict[str, tuple[str, str]] = {}
    query: dict[str, str] = {}
    digest = None
    route = Route()
    for rule in rules:
        named = {name.lower(): (name, value) for name, value in rule.headers}
        if rule.digest is not None:
            headers.pop("authorization", None)
            digest = rule.digest
        elif "authorization" in named:
            digest = None
        headers |= named
        query |= dict(rule.query)
        certificate = rule.route if rule.route.certificate else route
        route = Route(rule.route.proxy or route.proxy, certificate.certificate, certificate.certificate_key)
    return Rule(tuple(headers.values()), tuple(query.items()), digest, route)
