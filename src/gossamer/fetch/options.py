"""Options of fetching: limits on time and bytes, connections, headers."""

import re
from typing import Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from gossamer.model.options import BASIC, BASIC_SECRET, Section
from gossamer.url.site import is_suffix

_MIB = 1024 * 1024


class FetchOptions(Section):
    """Section `[fetch]` of the configuration."""

    connect_s_max: float = Field(default=20.0, gt=0, description="Time to connect, TLS included.")
    request_s_max: float = Field(
        default=120.0, gt=0, description="Time for a whole request, connecting included.", json_schema_extra=BASIC
    )
    low_speed_bytes_s: int = Field(
        default=50,
        ge=0,
        description="A transfer that brings less content is ended; headers count, framing does not; 0 never.",
    )
    low_speed_s: int = Field(default=60, ge=1, description="How long a transfer may be that slow.")
    head_bytes_max: int = Field(default=64 * 1024, ge=256, description="Bytes of a reply's status line and headers.")
    body_bytes_max: int = Field(
        default=10 * _MIB,
        ge=1,
        description="Bytes of a body as sent; the rest is cut and marked.",
        json_schema_extra=BASIC,
    )
    wire_ratio_max: float = Field(
        default=8.0,
        ge=1,
        description="A request may receive as many bytes as its headers and body have, times this, and 512 KiB more: "
        "framing, interim replies, trailers and TLS are counted. One that receives more ends as too_large.",
    )
    body_memory_bytes_max: int = Field(
        default=_MIB, ge=1, description="Bytes of one body, as sent or decoded, held in memory; larger ones go to disk."
    )
    bodies_memory_bytes_max: int = Field(
        default=40 * _MIB,
        ge=1,
        description="Bytes of all bodies under way held in memory; beyond, those of more than 64 KiB go to disk.",
    )
    decoded_bytes_max: int = Field(
        default=32 * _MIB, ge=1, description="Bytes of a body with its content coding removed."
    )
    decode_ratio_max: int = Field(
        default=200, ge=1, description="Decoded bytes for one byte sent, beyond the first MiB."
    )
    http_versions: Literal["1.1", "2"] = Field(default="2", description="The newest version to offer; 2 over TLS only.")
    connections_max: int = Field(default=1000, ge=1, description="Connections kept open for the next request, in all.")
    connections_per_host: int = Field(default=8, ge=0, description="Connections to one host at once; 0 is no bound.")
    connection_idle_s: int = Field(default=60, ge=1, description="How long an idle connection may be used again.")
    accept: str = Field(
        default="text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", description="The Accept header."
    )
    accept_language: str = Field(
        default="en,*;q=0.5", description="The Accept-Language header; empty sends none.", json_schema_extra=BASIC
    )
    proxy: str = Field(
        default="",
        description="Proxy URL, or env:NAME or file:PATH where it is to be read at every start. "
        "The variables of other programs, such as http_proxy, are never read.",
        json_schema_extra=BASIC_SECRET,
    )
    ca_bundle: str = Field(
        default="", description="File of trusted certificates (PEM); empty takes the system's.", json_schema_extra=BASIC
    )
    verify_tls: bool = Field(
        default=True,
        description="Refuse servers whose certificate is not valid for their name.",
        json_schema_extra=BASIC,
    )
    tls_min: Literal["1.0", "1.1", "1.2", "1.3"] = Field(default="1.2", description="The oldest TLS version to accept.")
    proxy_resolves: bool | None = Field(
        default=None,
        description="The proxy resolves names, so that the guard against private addresses judges an address that the "
        "proxy need not use. false: requests go through a tunnel (CONNECT) to the address that was checked. "
        "Not set: as resolve.allow_private says.",
    )
    headers: dict[str, str] = Field(
        default_factory=dict,
        description="Further headers of every request. Those that carry credentials (Authorization, Cookie …) go to "
        "the seed's origin alone, and are refused where seeds have several; the section [request] names the origin.",
        json_schema_extra=BASIC_SECRET,
    )
    logins_file: str = Field(
        default="",
        description="File of logins for FTP by host, in the form of netrc(5); anonymous elsewhere. "
        "What it holds is neither archived nor logged.",
        json_schema_extra=BASIC,
    )
    ftp_listing: Literal["LIST", "MLSD"] = Field(
        default="LIST", description="How a directory is requested from FTP servers: all know LIST, MLSD is exact."
    )
    file_roots: tuple[str, ...] = Field(
        default=(),
        description="Directories of this machine that file: addresses may be under; none is off.",
        json_schema_extra=BASIC,
    )


WHERE: Final = re.compile(
    r"(?:(?P<scheme>https?)://)?(?P<below>\.)?(?P<host>[a-z0-9_-]+(?:\.[a-z0-9_-]+)*|\[[0-9a-f:.]+\])"
    r"(?::(?P<port>[1-9][0-9]{0,4}))?(?P<path>/[!-\"$->@-~]*)?"
)
"""Where a rule holds: `example.org`, `.example.org`, `https://example.org:8443/private/`."""


def where_of(where: str) -> re.Match[str]:
    """Return the parts of the place where a rule holds.

    Raises:
        ValueError: it is none, or a public suffix.
    """
    match = WHERE.fullmatch(where)
    if match is None:
        raise ValueError(
            f"{where!r} is no place for a rule; write a host (example.org), a host with all below it (.example.org) "
            "or the beginning of URLs (https://example.org/private/)"
        )
    if match["below"] and is_suffix(match["host"]):
        raise ValueError(f"{where!r} is a public suffix: hosts below it have different owners; name one of them")
    return match


class UserPassword(Section):
    """A user name and a password."""

    user: str = Field(description="User name.")
    password: str = Field(description="Password, or env:NAME or file:PATH.")


class RequestRule(Section):
    """What requests to one place carry, and how they get there; what is not given is as for all."""

    headers: dict[str, str] = Field(
        default_factory=dict,
        description="Headers, in place of those of the same name. A User-Agent must contain robots.product_token.",
        json_schema_extra=BASIC_SECRET,
    )
    basic: UserPassword | None = Field(
        None, description="Basic authentication: {user, password}.", json_schema_extra=BASIC_SECRET
    )
    digest: UserPassword | None = Field(
        None,
        description="Digest authentication: {user, password}. The challenge is answered by a separate request.",
        json_schema_extra=BASIC_SECRET,
    )
    bearer: str = Field("", description="A bearer token, sent as Authorization.", json_schema_extra=BASIC_SECRET)
    query: dict[str, str] = Field(
        default_factory=dict,
        description="Query parameters that are added when a request is sent, and that no output shows.",
        json_schema_extra=BASIC_SECRET,
    )
    certificate: str = Field("", description="File of a client certificate (PEM).", json_schema_extra=BASIC)
    certificate_key: str = Field(
        "", description="File of its private key (PEM); empty: in the same file.", json_schema_extra=BASIC
    )
    proxy: str = Field(
        "",
        description="Proxy URL (http, https, socks5 or socks5h), in place of fetch.proxy.",
        json_schema_extra=BASIC_SECRET,
    )

    @model_validator(mode="after")
    def _has_one_authorization(self) -> Self:
        named = [name for name in ("basic", "digest", "bearer") if getattr(self, name)]
        if len(named) > 1:
            raise ValueError(f"{' and '.join(named)} exclude each other; keep one of them")
        return self


class RequestOptions(BaseModel):
    """Rules for requests: each key is a host, a host with all below it, or the beginning of URLs; its value a table."""

    model_config = ConfigDict(frozen=True, extra="allow")

    __pydantic_extra__: dict[str, RequestRule]

    @model_validator(mode="before")
    @classmethod
    def _places(cls, table: object) -> object:
        if not isinstance(table, dict):
            return table
        for where in table:
            where_of(where)
        return {where: rule for where, rule in table.items() if rule is not None}

    @property
    def rules(self) -> dict[str, RequestRule]:
        """By place."""
        return self.__pydantic_extra__
