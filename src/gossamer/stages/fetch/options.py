"""Options of fetching: limits on time and bytes, connections, headers."""

import re
from typing import Annotated, Final, Literal, NamedTuple

from gossamer.options import Key, NamedSection, Section
from gossamer.url.site import is_suffix

_MIB = 1024 * 1024


class Route(NamedTuple):
    """The proxy and client certificate of a request. Connections are shared only among requests with the same route."""

    proxy: str = ""
    certificate: str = ""
    certificate_key: str = ""


class FetchOptions(Section, frozen=True):
    """Requests: times, sizes, headers, proxy and TLS."""

    connect_s_max: Annotated[float, Key("Time to connect, TLS included; for a lone seed, to answer.", gt=0)] = 20.0
    request_s_max: Annotated[float, Key("Time for a whole request, connecting included.", gt=0, basic=True)] = 120.0
    low_speed_bytes_s: Annotated[
        int, Key("A transfer with less content per second is ended; headers count, framing does not; 0: never.", ge=0)
    ] = 50
    low_speed_s: Annotated[int, Key("How long a transfer may be that slow, in seconds.", ge=1)] = 60
    head_bytes_max: Annotated[int, Key("Bytes of a reply's status line and headers.", ge=256)] = 256 * 1024
    body_bytes_max: Annotated[int, Key("Bytes of a body as sent; the rest is cut and marked.", ge=1, basic=True)] = (
        10 * _MIB
    )
    wire_ratio_max: Annotated[
        float,
        Key(
            "A request may receive as many bytes as its headers and body have, times this, and 512 KiB more: framing, "
            "interim replies, trailers and TLS are counted. One that receives more ends as too_large.",
            ge=1,
        ),
    ] = 8.0
    body_memory_bytes_max: Annotated[
        int, Key("Bytes of one body, as sent or decoded, held in memory; larger ones go to disk.", ge=1)
    ] = _MIB
    bodies_memory_bytes_max: Annotated[
        int, Key("Bytes of all bodies under way held in memory; beyond, those of more than 64 KiB go to disk.", ge=1)
    ] = 40 * _MIB
    decoded_bytes_max: Annotated[int, Key("Bytes of a body with its content coding removed.", ge=1)] = 32 * _MIB
    decode_ratio_max: Annotated[int, Key("Decoded bytes for one byte sent, beyond the first MiB.", ge=1)] = 200
    http_versions: Annotated[Literal["1.1", "2"], Key("The newest version to offer; 2 over TLS only.")] = "2"
    connections_max: Annotated[int, Key("Connections kept open for the next request, in all.", ge=1)] = 1000
    connections_per_host: Annotated[
        int, Key("Connections kept open to one address; more while requests need them; 0: any number.", ge=0)
    ] = 8
    connection_idle_s: Annotated[int, Key("How long an idle connection may be used again.", ge=1)] = 60
    accept: Annotated[str, Key("Accept header.")] = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
    accept_language: Annotated[str, Key("The Accept-Language header; empty sends none.", basic=True)] = "en,*;q=0.5"
    content_codings: Annotated[
        tuple[Literal["gzip", "br", "deflate", "zstd"], ...],
        Key(
            "Content codings offered in Accept-Encoding, the preferred one first; none: bodies are sent uncompressed. "
            "Bodies are archived as sent, and ReplayWeb.page reads neither deflate nor zstd, pywb no zstd."
        ),
    ] = ("gzip", "br")
    proxy: Annotated[
        str,
        Key(
            "Proxy URL; or env:NAME or file:PATH, which is read at every start. The variables of other programs, "
            "such as http_proxy, are never read.",
            basic=True,
            secret=True,
        ),
    ] = ""
    ca_bundle: Annotated[
        str, Key("File of trusted certificates (PEM); empty takes the system's.", basic=True, path="read")
    ] = ""
    verify_tls: Annotated[bool, Key("Refuse servers whose certificate is not valid for their name.", basic=True)] = True
    tls_min: Annotated[Literal["1.0", "1.1", "1.2", "1.3"], Key("The oldest TLS version to accept.")] = "1.2"
    tls_legacy_renegotiation: Annotated[
        bool,
        Key(
            "Accept servers of TLS 1.2 and older that do not know secure renegotiation (RFC 5746), as browsers do. "
            "An attacker on the path could put bytes before a request to them. Holds for all crawls of a process."
        ),
    ] = True
    proxy_resolves: Annotated[
        bool | None,
        Key(
            "true: the proxy resolves names, and may use another address than the one that the guard against "
            "private addresses checked. false: requests go through a tunnel (CONNECT) to the address that was "
            "checked. Not set: the value of resolve.allow_private."
        ),
    ] = None
    headers: Annotated[
        dict[str, str],
        Key(
            "Further headers of every request. Headers with credentials (Authorization, Cookie …) go only to the "
            "origin of the seeds, and are refused if the seeds have several; then use the section [request].",
            basic=True,
            secret=True,
        ),
    ] = {}
    logins_file: Annotated[
        str, Key("File of logins for FTP by host, as netrc(5); neither archived nor logged.", basic=True, path="read")
    ] = ""
    ftp_listing: Annotated[
        Literal["LIST", "MLSD"], Key("How a directory is requested from FTP servers: all know LIST, MLSD is exact.")
    ] = "LIST"
    file_roots: Annotated[
        tuple[str, ...], Key("Directories that file: URLs may read; none: no file: URLs.", basic=True, path="read")
    ] = ()


WHERE: Final = re.compile(
    r"(?:(?P<scheme>https?)://)?(?P<below>\.)?(?P<host>[a-z0-9_-]++(?:\.[a-z0-9_-]++)*|\[[0-9a-f:.]+\])"
    r"(?::(?P<port>[1-9][0-9]{0,4}))?(?P<path>/[!-\"$->@-~]*)?"
)
"""Matches the place of a rule: `example.org`, `.example.org`, `https://example.org:8443/private/`."""


def where_of(where: str) -> re.Match[str]:
    """Return the parts of a rule's place. Raises ValueError: it is not a place, or it is a public suffix."""
    match = WHERE.fullmatch(where)
    if match is None:
        raise ValueError(
            f"{where!r} is no place for a rule; write a host (example.org), a host with all below it (.example.org) "
            "or the beginning of URLs (https://example.org/private/)"
        )
    if match["below"] and is_suffix(match["host"]):
        raise ValueError(f"{where!r} is a public suffix: hosts below it have different owners; name one of them")
    return match


class UserPassword(Section, frozen=True):
    """A user name and a password."""

    user: Annotated[str, Key("User name.")]
    password: Annotated[str, Key("Password, or env:NAME or file:PATH.")]


class RequestRule(Section, frozen=True):
    """Headers and routes of requests to one place; keys that are not given are as for all."""

    headers: Annotated[
        dict[str, str],
        Key(
            "Headers, in place of those of the same name. A User-Agent must contain robots.product_token.",
            basic=True,
            secret=True,
        ),
    ] = {}
    basic: Annotated[UserPassword | None, Key("Basic authentication: {user, password}", basic=True, secret=True)] = None
    digest: Annotated[
        UserPassword | None,
        Key("Digest authentication: {user, password}; a 401 gives the challenge.", basic=True, secret=True),
    ] = None
    bearer: Annotated[str, Key("A bearer token, sent as Authorization.", basic=True, secret=True)] = ""
    query: Annotated[
        dict[str, str],
        Key("Query parameters that are added when a request is sent; no output shows them.", basic=True, secret=True),
    ] = {}
    certificate: Annotated[str, Key("File of a client certificate (PEM).", basic=True, path="read")] = ""
    certificate_key: Annotated[
        str, Key("File of its private key (PEM); empty: in the same file.", basic=True, path="read")
    ] = ""
    proxy: Annotated[
        str, Key("Proxy URL (http, https, socks5 or socks5h), in place of fetch.proxy.", basic=True, secret=True)
    ] = ""

    def __post_init__(self) -> None:
        named = [name for name in ("basic", "digest", "bearer") if getattr(self, name)]
        if len(named) > 1:
            raise ValueError(f"{' and '.join(named)} exclude each other; keep one of them")


class RequestOptions(NamedSection, frozen=True):
    """Headers, credentials and proxies: each key is a host, a domain (`.example.org`) or the beginning of URLs."""

    rules: Annotated[dict[str, RequestRule], Key("By place.", names=where_of, secret=True)] = {}
