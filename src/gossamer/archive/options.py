"""What can be set about the archive."""

from typing import Literal

from pydantic import Field

from gossamer.model.options import BASIC, BASIC_SECRET, Section


class ArchiveOptions(Section):
    """The section `archive` of the configuration."""

    warc: bool = Field(True, description="Write WARC files.", json_schema_extra=BASIC)
    warc_segment_bytes_max: int = Field(
        1_000_000_000,
        ge=1,
        description="A WARC file of this many bytes is finished and a new one begins.",
    )
    warc_compression: Literal["gzip", "zstd"] = Field(
        "gzip",
        description="Of each record by itself. Few tools read zstd yet; docs/reference/output.md names them.",
    )
    warc_gzip_level: int = Field(2, ge=0, le=3, description="ISA-L's level: 0 is quickest, 3 is smallest.")
    warc_zstd_level: int = Field(3, ge=1, le=19, description="Zstandard's level: 1 is quickest, 19 is smallest.")
    warc_robots: bool = Field(True, description="Archive replies to requests for robots.txt.", json_schema_extra=BASIC)
    warc_dns: bool = Field(False, description="Archive what name servers answered, as records of `dns:HOST`.")
    warc_request_records: bool = Field(True, description="Archive each request beside its response.")
    warc_metadata_records: bool = Field(True, description="Archive how long each fetch took and what led to it.")
    warc_outlinks: bool = Field(False, description="List a page's links in its metadata record too.")
    digests: Literal["sha1", "sha256"] = Field("sha1", description="Algorithm of payload and block digests.")
    links: bool = Field(True, description="Write the table `links`.", json_schema_extra=BASIC)
    table_segment_rows_max: int = Field(
        2_000_000, ge=1, description="A table's log with this many rows is finished and becomes Parquet."
    )
    table_segment_bytes_max: int = Field(
        256_000_000, ge=1, description="A table's log with this many bytes is finished and becomes Parquet."
    )
    table_segment_s_max: float = Field(
        600.0, gt=0, description="Seconds after which a table's log is finished and becomes Parquet."
    )
    table_frame_rows_max: int = Field(
        50_000, ge=1, description="Rows held in memory before they go to the log, even within an epoch."
    )
    table_group_bytes_max: int = Field(
        12 << 20,
        ge=1 << 16,
        description="Rows of a Parquet file's row group in memory, three times while it is written.",
    )
    store: str = Field(
        "",
        description="Object store to which finished files are copied: s3://BUCKET/PREFIX, gs://, az://, file:///PATH.",
        json_schema_extra=BASIC,
    )
    store_options: dict[str, str] = Field(
        default_factory=dict,
        description="Of the store, as obstore names them: endpoint, region, allow_http …",
        json_schema_extra=BASIC_SECRET,
    )
    store_secrets_file: str = Field(
        "",
        description="TOML file of more such options, those that must not be archived: secret_access_key …",
        json_schema_extra=BASIC,
    )
    store_keep_warc: bool = Field(
        True,
        description="Keep WARC files here when the store holds them, verified. Tables and index always stay.",
        json_schema_extra=BASIC,
    )
    store_verify: Literal["auto", "read", "size"] = Field(
        "auto",
        description="auto: by the ETag where it is a sum of the content, else by reading back; read: always; size: no "
        "more than the size.",
    )
    store_uploads_max: int = Field(2, ge=1, le=64, description="Files uploaded at once.")
    store_part_bytes: int = Field(
        8_388_608, ge=5_242_880, description="Larger files are sent in parts of this size, two of them at once."
    )
    store_request_s_max: float = Field(300.0, gt=0, description="For one request to the store: one part.")
    store_retry_s_first: float = Field(1.0, gt=0, description="Pause after the store failed; doubled each time.")
    store_retry_s_max: float = Field(60.0, gt=0, description="Longest such pause.")
    store_wait_s: float = Field(
        600.0, ge=0, description="At the crawl's end, how long to wait for a store that takes nothing."
    )
    index_sort_bytes_max: int = Field(
        64_000_000, ge=1, description="Bytes of index lines sorted in memory at once; more are merged from files."
    )


class SearchOptions(Section):
    """The section `search` of the configuration."""

    enabled: bool = Field(
        False, description="Keep a full-text index while crawling; needs gossamer[search].", json_schema_extra=BASIC
    )
    memory_bytes_max: int = Field(
        50_000_000, ge=15_000_000, description="Bytes of the index held in memory before they are written."
    )
    commit_s: float = Field(
        4.0, gt=0, allow_inf_nan=False, description="What was fetched can be found after about this many seconds."
    )
    commit_pages: int = Field(2_000, ge=1, description="Or after this many pages, if that comes first.")
    frame_bytes_max: int = Field(
        1_000_000, ge=1, description="Text held in memory before it goes to the log, even within an epoch."
    )
