"""Options of the shard's store."""

from typing import Annotated

from gossamer.options import Key, Section


class StateOptions(Section, frozen=True):
    """The memory of the store, and checkpoints."""

    hosts_store: Annotated[
        str,
        Key(
            "A directory that shares facts about hosts (robots.txt, delays, errors, budgets) between crawls; only "
            "one crawl at a time can use it",
            basic=True,
            path="written",
        ),
    ] = ""
    hosts_store_cache_bytes: Annotated[int, Key("Blocks of the hosts store kept in memory", ge=1 << 20)] = 8 << 20
    cache_bytes: Annotated[int, Key("Blocks of the store kept in memory", ge=1 << 20)] = 52 << 20
    write_buffer_bytes: Annotated[int, Key("Writes gathered in memory before they are sorted", ge=1 << 20)] = 40 << 20
    background_bytes_s: Annotated[
        int, Key("Bytes that compaction and flushes may write in a second, to spare the disk", ge=1 << 20)
    ] = 128 << 20
    checkpoint_uri: Annotated[
        str,
        Key(
            "Where checkpoints are stored, to survive the loss of a disk or a machine: s3://BUCKET/PREFIX, gs://, "
            "az://, or file:///PATH, a directory that all machines of a cluster share. Its options and secrets are "
            "archive.store_options and archive.store_secrets_file. `gossamer restore URI -o DIR` restores the "
            "newest.",
            basic=True,
        ),
    ] = ""
    checkpoint_s: Annotated[
        float,
        Key("Seconds between checkpoints of a shard: the most work that losing a machine costs.", gt=0, le=604_800),
    ] = 300.0
