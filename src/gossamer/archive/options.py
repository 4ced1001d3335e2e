"""What can be set about the archive."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class ArchiveOptions(BaseModel):
    """The section `archive` of the configuration."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    warc: bool = Field(True, description="Write WARC files.")
    warc_segment_bytes_max: int = Field(
        1_000_000_000,
        ge=1,
        description="A WARC file of this many bytes is finished and a new one begins.",
    )
    warc_compression: Literal["gzip", "zstd"] = Field(
        "gzip", description="Of each record by itself. Few tools read zstd yet; docs/output.md names them."
    )
    warc_gzip_level: int = Field(2, ge=0, le=3, description="ISA-L's level: 0 is quickest, 3 is smallest.")
    warc_zstd_level: int = Field(3, ge=1, le=19, description="Zstandard's level: 1 is quickest, 19 is smallest.")
    warc_robots: bool = Field(True, description="Archive replies to requests for robots.txt.")
    warc_dns: bool = Field(False, description="Archive what name servers answered, as records of `dns:HOST`.")
    warc_request_records: bool = Field(True, description="Archive each request beside its response.")
    warc_metadata_records: bool = Field(True, description="Archive how long each fetch took and what led to it.")
    warc_outlinks: bool = Field(False, description="List a page's links in its metadata record too.")
    digests: Literal["sha1", "sha256"] = Field("sha1", description="Algorithm of payload and block digests.")
    links: bool = Field(True, description="Write the table `links`.")
    table_segment_rows_max: int = Field(
        2_000_000, ge=1, description="A table's log with this many rows is finished and becomes Parquet."
    )
    table_segment_bytes_max: int = Field(
        256_000_000, ge=1, description="A table's log with this many bytes is finished and becomes Parquet."
    )
    table_frame_rows_max: int = Field(
        50_000, ge=1, description="Rows held in memory before they go to the log, even within an epoch."
    )
    index_sort_bytes_max: int = Field(
        64_000_000, ge=1, description="Bytes of index lines sorted in memory at once; more are merged from files."
    )
