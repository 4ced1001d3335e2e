"""Options of the archive."""

from typing import Annotated, Literal

from gossamer.options import Key, Section


class ArchiveOptions(Section, frozen=True):
    """Files to write, and where: WARC files, tables, uploads."""

    warc: Annotated[bool, Key("Write WARC files.", basic=True)] = True
    warc_segment_bytes_max: Annotated[
        int, Key("A WARC file of this many bytes is finished and a new one begins.", ge=1)
    ] = 1_000_000_000
    warc_compression: Annotated[
        Literal["gzip", "zstd"],
        Key("Compression of each record. Few tools read zstd yet; docs/reference/output.md names them."),
    ] = "gzip"
    warc_gzip_level: Annotated[int, Key("ISA-L's level: 0 is quickest, 3 is smallest.", ge=0, le=3)] = 2
    warc_zstd_level: Annotated[int, Key("Zstandard's level: 1 is quickest, 19 is smallest.", ge=1, le=19)] = 3
    warc_robots: Annotated[bool, Key("Archive replies to requests for robots.txt.", basic=True)] = True
    warc_dns: Annotated[bool, Key("Archive what name servers answered, as records of `dns:HOST`.")] = False
    warc_request_records: Annotated[bool, Key("Archive each request beside its response.")] = True
    warc_metadata_records: Annotated[bool, Key("Archive how long each fetch took and what led to it.")] = True
    warc_outlinks: Annotated[bool, Key("List a page's links in its metadata record too.")] = False
    digests: Annotated[Literal["sha1", "sha256"], Key("Algorithm of payload and block digests.")] = "sha1"
    links: Annotated[bool, Key("Write the table `links`.", basic=True)] = True
    table_segment_rows_max: Annotated[
        int, Key("A table's log with this many rows is finished and becomes Parquet.", ge=1)
    ] = 2_000_000
    table_segment_bytes_max: Annotated[
        int, Key("A table's log with this many bytes is finished and becomes Parquet.", ge=1)
    ] = 256_000_000
    table_segment_s_max: Annotated[
        float, Key("Seconds after which a table's log is finished and becomes Parquet.", gt=0)
    ] = 600.0
    table_frame_rows_max: Annotated[
        int, Key("Rows held in memory before they go to the log, even within an epoch.", ge=1)
    ] = 50_000
    table_group_bytes_max: Annotated[
        int, Key("Rows of a Parquet file's row group in memory, three times while it is written.", ge=1 << 16)
    ] = 12 << 20
    store: Annotated[
        str, Key("Object store to which finished files go: s3://BUCKET/PREFIX, gs://, az://, file:///PATH.", basic=True)
    ] = ""
    store_options: Annotated[
        dict[str, str],
        Key("Options of the store, as obstore names them: endpoint, region, allow_http …", basic=True, secret=True),
    ] = {}
    store_secrets_file: Annotated[
        str, Key("TOML file of secret options of the store, not archived: secret_access_key …", basic=True, path="read")
    ] = ""
    store_keep_warc: Annotated[
        bool,
        Key(
            "Keep local WARC files. If false, one is removed once its upload to archive.store is verified and, with "
            "state.checkpoint_uri, once a checkpoint lists it. Tables and index always stay.",
            basic=True,
        ),
    ] = True
    store_verify: Annotated[
        Literal["auto", "read", "size"],
        Key("auto: by an ETag that is a checksum of the content, else read; read: by reading back; size: by the size."),
    ] = "auto"
    store_uploads_max: Annotated[int, Key("Files uploaded at once.", ge=1, le=64)] = 2
    store_part_bytes: Annotated[
        int, Key("Larger files are sent in parts of this size, two of them at once.", ge=5_242_880)
    ] = 8_388_608
    store_request_s_max: Annotated[
        float, Key("Time limit of one request to the store, which sends one part, in seconds.", gt=0)
    ] = 300.0
    store_retry_s_first: Annotated[float, Key("Pause after the store failed; doubled each time.", gt=0)] = 1.0
    store_retry_s_max: Annotated[float, Key("Longest such pause.", gt=0)] = 60.0
    store_wait_s: Annotated[
        float,
        Key("At the crawl's end, how long to wait for a store that accepts nothing; after a stop at most 60.", ge=0),
    ] = 600.0
    index_sort_bytes_max: Annotated[
        int, Key("Memory for index lines that are sorted at once; more are merged from files.", ge=1)
    ] = 16_000_000


class SearchOptions(Section, frozen=True):
    """The full-text index."""

    enabled: Annotated[bool, Key("Keep a full-text index while crawling; needs gossamer[search].", basic=True)] = False
    memory_bytes_max: Annotated[
        int, Key("Bytes of the index held in memory before they are written.", ge=15_000_000)
    ] = 50_000_000
    commit_s: Annotated[float, Key("Pages are found about this many seconds after their commit.", gt=0, le=3_600)] = 4.0
    commit_pages: Annotated[int, Key("Or after this many pages, if that comes first.", ge=1)] = 2_000
    frame_bytes_max: Annotated[
        int, Key("Text held in memory before it goes to the log, even within an epoch.", ge=1)
    ] = 1_000_000
