"""Options of the room: limits on time and bytes, connections, what is sent."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from gossamer.fetch.credentials import origin_of
from gossamer.model.live import BASIC, BASIC_SECRET

_MIB = 1024 * 1024


class FetchOptions(BaseModel):
    """Section `[fetch]` of the configuration."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    connect_s_max: float = Field(
        default=20.0, gt=0, description="Time to connect, TLS included.", json_schema_extra=BASIC
    )
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
        "the seed's origin alone, and are refused where seeds have several; fetch.origin_headers names the origin.",
        json_schema_extra=BASIC_SECRET,
    )
    origin_headers: dict[str, dict[str, str]] = Field(
        default_factory=dict,
        description="By origin, such as https://example.org: headers that it alone receives, for credentials. "
        "A value may be env:NAME or file:PATH: it is read at every start and written nowhere.",
        json_schema_extra=BASIC_SECRET,
    )
    logins_file: str = Field(
        default="",
        description="File of logins for FTP by host, in the form of netrc(5); anonymous elsewhere. "
        "What it holds is neither archived nor logged.",
        json_schema_extra=BASIC,
    )
    ftp_listing: Literal["LIST", "MLSD"] = Field(
        default="LIST", description="How FTP servers are asked for a directory: LIST all know, MLSD is exact."
    )
    file_roots: tuple[str, ...] = Field(
        default=(),
        description="Directories of this machine that file: addresses may be under; none is off.",
        json_schema_extra=BASIC,
    )

    @field_validator("origin_headers")
    @classmethod
    def _by_origin(cls, by_origin: dict[str, dict[str, str]]) -> dict[str, dict[str, str]]:
        for origin in by_origin:
            if origin_of(origin) != origin or not origin.startswith(("http://", "https://")):
                raise ValueError(
                    f"{origin!r} is not an origin; write scheme, host and port, such as https://example.org"
                )
        return by_origin
