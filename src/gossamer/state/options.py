"""Options of the shard's store."""

from typing import Annotated

from gossamer.options import Key, Section


class StateOptions(Section, frozen=True):
    """The store: its memory, and where copies of it go."""

    hosts_store: Annotated[
        str,
        Key(
            "A directory in which what is learned of hosts (robots.txt, delays, errors, budgets) is kept from crawl "
            "to crawl; one crawl at a time uses it",
            basic=True,
        ),
    ] = ""
    hosts_store_cache_bytes: Annotated[int, Key("Blocks of that store kept in memory", ge=1 << 20)] = 8 << 20
    cache_bytes: Annotated[int, Key("Blocks of the store kept in memory", ge=1 << 20)] = 52 << 20
    write_buffer_bytes: Annotated[int, Key("Writes gathered in memory before they are sorted", ge=1 << 20)] = 40 << 20
    background_bytes_s: Annotated[
        int, Key("Bytes that compaction and flushes may write in a second, to spare the disk", ge=1 << 20)
    ] = 128 << 20
    checkpoint_uri: Annotated[
        str,
        Key(
            "Where checkpoints are kept, so that the disk or a machine may be lost: s3://BUCKET/PREFIX, gs://, az://, "
            "or file:///PATH of a directory, which all machines of a cluster share. Options and secrets are "
            "archive.store_options and archive.store_secrets_file. `gossamer restore URI -o DIR` restores the newest.",
            basic=True,
        ),
    ] = ""
    checkpoint_s: Annotated[
        float,
        Key(
            "Time between two checkpoints of a shard, in seconds: the most work that the loss of a machine costs.", gt=0
        ),
    ] = 300.0
