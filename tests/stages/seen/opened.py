"""A form of the eliminator with all that it stands on, opened in a directory, committed and crashed as a shard does."""

from __future__ import annotations

from pathlib import Path

import msgspec

from gossamer.ports import UrlSeen
from gossamer.stages.seen.bloom import BloomUrlSeen
from gossamer.stages.seen.diskmerge import DiskMergeUrlSeen
from gossamer.stages.seen.options import SeenOptions
from gossamer.stages.seen.urls import MemoryUrlSeen, RocksUrlSeen
from gossamer.state.epoch import Epochs
from gossamer.state.journals import Journals, ManifestEntry
from gossamer.state.schema import MANIFEST
from gossamer.state.store import Store
from gossamer.url.name import Namer
from gossamer.url.url import Url, fingerprint

FORMS = ("rocksdb", "memory", "diskmerge", "bloom")
EXACT = FORMS[:3]


def named(text: str) -> Url:
    url = Namer().name(text)
    assert url is not None
    return url


def numbered(number: int) -> Url:
    """Return a URL without the cost of naming it; its site is one of 97."""
    site = f"host{number % 97}.example"
    key = f"http://{site}/page/{number}"
    return Url(key, key, fingerprint(key), site, site, fingerprint(site) % 4096)


class Opened:
    """One form in `directory`."""

    def __init__(
        self, form: str, directory: Path, options: SeenOptions | None = None, store_bytes: int = 1 << 20
    ) -> None:
        options = options or SeenOptions()
        self.form = form
        self.store = Store(directory / "state/store", store_bytes, store_bytes)
        self.epochs = Epochs(self.store)
        self.journals = Journals(directory)
        manifest = self.store.get("meta", MANIFEST)
        self.journals.recover(msgspec.msgpack.decode(manifest, type=list[ManifestEntry]) if manifest else [])
        self.seen: UrlSeen
        match form:
            case "rocksdb":
                self.seen = RocksUrlSeen(self.epochs, options.popular_urls_max)
            case "memory":
                self.seen = MemoryUrlSeen(self.epochs)
            case "diskmerge":
                self.seen = DiskMergeUrlSeen(self.epochs, self.journals, options)
            case _:
                self.seen = BloomUrlSeen(self.epochs, self.journals, options)

    def offer(self, urls: list[Url], depth: int = 1, hops: int = 0) -> list[int]:
        return list(self.seen.offer(urls, [depth] * len(urls), [hops] * len(urls)))

    def begin_commit(self) -> tuple[int, list[ManifestEntry]]:
        """Do the loop's part of a commit."""
        if not isinstance(self.seen, RocksUrlSeen):
            self.seen.cut(0.0)  # type: ignore[attr-defined]
        manifest = self.journals.cut()
        self.epochs.put("meta", MANIFEST, msgspec.msgpack.encode(manifest))
        return self.epochs.cut(), manifest

    def commit(self) -> None:
        number, manifest = self.begin_commit()
        self.journals.sync()
        self.epochs.commit(number)
        self.epochs.apply(number)
        self.epochs.settle()
        self.journals.settle(manifest)

    def wait(self) -> None:
        """Let the background end what it does, so that the next commit takes it in."""
        if isinstance(self.seen, DiskMergeUrlSeen) and self.seen._working is not None:
            self.seen._working.result()
        if isinstance(self.seen, BloomUrlSeen) and self.seen._saving is not None:
            assert self.seen._saving.written is not None
            self.seen._saving.written.result()

    def crash(self) -> None:
        """Let go of the files and keep nothing: what was not committed is in nobody's memory any more."""
        if isinstance(self.seen, DiskMergeUrlSeen | BloomUrlSeen):
            self.seen.close()
        self.journals.close_files()
        self.store.close()
