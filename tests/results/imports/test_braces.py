"""Keys of an index hold what addresses hold, unescaped: readers of its lines are not misled by braces in them."""

from __future__ import annotations

import gzip
import json
import zipfile
from pathlib import Path

from gossamer.config.seedfiles import addresses, form_of
from tests.commands import run
from tests.results.imports.archives import HOST, Stored, digest_of, do_import, page, write_warc

URL = f"{HOST}/jot?l=%7B%22a%22:%7B%22b%22:1%7D%7D"


def test_braces_in_addresses(tmp_path: Path) -> None:
    same = Stored(
        URL,
        b"",
        "2026-01-02T00:00:00Z",
        "revisit",
        "304 Not Modified",
        fields={"WARC-Payload-Digest": digest_of(page(1))},
    )
    archive = write_warc(tmp_path / "a.warc.gz", [Stored(URL, page(1)), same])
    directory = tmp_path / "crawl"
    do_import(directory, archive)
    status, out, _ = run("verify", str(directory), "--deep")
    assert status == 0, out
    index = directory / "index.cdxj"
    keys = {line.split(b" ")[0] for line in index.read_bytes().splitlines()}
    assert keys == {b'example,a)/jot?l={"a":{"b":1}}'}
    assert set(addresses(index, form_of(index))) == {URL}
    assert run("export", str(directory), "--to", "wacz", "-o", str(tmp_path / "a.wacz"))[0] == 0
    with zipfile.ZipFile(tmp_path / "a.wacz") as package:
        (block,) = package.read("indexes/index.idx").splitlines()[1:]
        lines = gzip.decompress(package.read("indexes/index.cdx.gz"))
    key, _, place = block.split(b" ", 2)
    assert key in keys
    assert json.loads(place)["offset"] == 0
    assert lines.startswith(key)
