"""Archives are found in files, folders, globs, lists, packages and stores; HAR files are read."""

from __future__ import annotations

import base64
import gzip
import io
import json
import re
import tarfile
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import pytest

from gossamer.model.errors import ConfigError
from gossamer.results.imports.capture import Capture, Refused, Room, Skipped
from gossamer.results.imports.listed import listed_pages
from gossamer.results.imports.reading import captures_of
from gossamer.results.imports.sources import FIDDLER, HTTRACK, NO_STORE, PACKED, TWICE, UNKNOWN, find_sources
from gossamer.results.imports.texts import PageTexts
from gossamer.world.spill import Spills
from tests.results.imports.test_records import BODY, captures_in, items_of, record, write


def names(*given: Path | str, **options: Any) -> list[str]:
    return [source.name.rpartition("/")[2] for source in find_sources([str(one) for one in given], **options)]


def test_folders_globs_and_names(tmp_path: Path) -> None:
    (tmp_path / "b/deep").mkdir(parents=True)
    write(tmp_path / "b/2.warc.gz", gzip.compress(record()))
    write(tmp_path / "b/1.WARC", record())
    write(tmp_path / "b/deep/3.warc.gz.open", gzip.compress(record()))
    write(tmp_path / "b/page.html", b"<p>WARC/1.0")
    write(tmp_path / "named otherwise", record())
    assert names(tmp_path / "b") == ["1.WARC", "2.warc.gz", "3.warc.gz.open"]
    assert names(tmp_path / "b/*.warc.gz") == ["2.warc.gz"]
    assert names(tmp_path / "**/*.warc*") == ["2.warc.gz", "3.warc.gz.open"]
    assert names(tmp_path / "b/2.warc.gz", tmp_path / "b") == ["2.warc.gz", "1.WARC", "3.warc.gz.open"]
    assert names(tmp_path / "named otherwise") == ["named otherwise"]
    assert names((tmp_path / "named otherwise").as_uri()) == ["named otherwise"]
    assert [source.number for source in find_sources([str(tmp_path / "b")])] == [0, 1, 2]


def test_folders_on_other_disks_are_read_by_their_links_once(tmp_path: Path) -> None:
    crawl = tmp_path / "crawl"
    disk = tmp_path / "disk"
    crawl.mkdir()
    disk.mkdir()
    write(disk / "1.warc.gz", b"")
    (crawl / "warc").symlink_to(disk)
    (crawl / "again").symlink_to(disk)
    (disk / "above").symlink_to(crawl)
    assert names(crawl) == ["1.warc.gz"]


def test_a_name_that_leads_to_nothing_is_an_error_and_a_file_of_a_folder_a_fault(tmp_path: Path) -> None:
    for bad in ("none", "*.warc", "ftp://x.example/a"):
        with pytest.raises(ConfigError, match=r"name a file|s3://"):
            find_sources([str(tmp_path / bad) if "://" not in bad else bad])
    with pytest.raises(ConfigError, match="there is no archive"):
        find_sources([str(tmp_path)])
    for content in (b"<p>no archive</p>", b"", bytes(100), gzip.compress(b"text"), b"\x1f\x8b\x08cut"):
        path = write(tmp_path / "a.wacz", content)
        with pytest.raises(ConfigError, match=r"a\.wacz (is|cannot|has|ends)"):
            find_sources([str(path)])
        beside = write(tmp_path / "sound", record())
        assert [bool(source.fault) for source in find_sources([str(path), str(beside)])] == [True, False]
        (item,) = items_of(tmp_path)
        assert isinstance(item, Refused)
        assert item.file == str(path)


@pytest.mark.parametrize("bad", [b"<p>no archive</p>\n", b"\xff" * 60, b"\x1f\x8b\x08cut", gzip.compress(b"text")])
def test_an_archive_whose_beginning_is_damaged_is_known_by_its_name(tmp_path: Path, bad: bytes) -> None:
    refused, found = items_of(write(tmp_path / "a.warc.gz", bad + gzip.compress(record())))
    assert isinstance(refused, Refused)
    assert isinstance(found, Capture)


def test_lists_of_paths(tmp_path: Path) -> None:
    (tmp_path / "crawl-data").mkdir()
    write(tmp_path / "crawl-data/1.warc.gz", gzip.compress(record()))
    write(tmp_path / "crawl-data/2.warc.gz", gzip.compress(record()))
    lines = f"crawl-data/1.warc.gz\r\n\n# all\n{tmp_path}/crawl-data/2.warc.gz\ncrawl-data/gone.warc.gz\n".encode()
    for path in (write(tmp_path / "warc.paths", lines), write(tmp_path / "warc.paths.gz", gzip.compress(lines))):
        sources = find_sources([str(path)])
        assert [source.fault[:14] for source in sources] == ["", "", "is not there"]
    beside = write(tmp_path / "crawl-data/warc.paths", b"crawl-data/1.warc.gz\n")
    assert find_sources([str(beside)])[0].fault == ""
    with pytest.raises(ConfigError, match=f"{UNKNOWN}"):
        find_sources([str(write(tmp_path / "other", b"1.warc.gz\nsome text\n"))])
    mistyped = find_sources([str(write(beside, b"\xef\xbb\xbf1.warc.gz\n2.warc.gz\n3.war.gz\n"))])
    assert [source.fault[:14] for source in mistyped] == ["", "", "is not there"]


def test_lists_of_packages(tmp_path: Path) -> None:
    """As Browsertrix lists a collection (`multi-wacz-package`), and as a package lists its files once unpacked."""
    package(tmp_path / "a.wacz", archive_x=record())
    write(tmp_path / "data.warc", record())
    paths = ["a.wacz", "https://a.example/b.wacz?sign=1", "pages/pages.jsonl", "data.warc"]
    listing = {"profile": "multi-wacz-package", "resources": [{"name": path, "path": path} for path in paths]}
    path = write(tmp_path / "datapackage.json", json.dumps(listing).encode())
    assert [source.fault for source in find_sources([str(path)])] == ["", NO_STORE, ""]
    with pytest.raises(ConfigError, match=UNKNOWN):
        find_sources([str(write(tmp_path / "none.json", b'{"resources": [{"path": "a.txt"}, {}]}'))])


def package(path: Path, *, method: int = zipfile.ZIP_STORED, **files: bytes) -> Path:
    with zipfile.ZipFile(path, "w", method) as file:
        file.writestr("datapackage.json", "{}")
        for name, data in files.items():
            file.writestr(name.replace("_", "/").replace("-", "."), data)
    return path


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_packages(tmp_path: Path, method: int) -> None:
    members = gzip.compress(record("http://a.example/1")) + gzip.compress(record("http://a.example/2"))
    path = package(
        tmp_path / "a.wacz",
        method=method,
        **{"archive_a-warc-gz": members, "archive_b-warc": record("http://a.example/3"), "archive_..-x": b"z"},
    )
    found = captures_in(path)
    assert [(one.url[-1], one.body) for one in found] == [("1", BODY), ("2", BODY), ("3", BODY)]
    for one in found:
        assert one.place.linkable == (method == zipfile.ZIP_STORED)
        if one.place.linkable:  # The place is that in the package.
            data = path.read_bytes()[one.place.offset : one.place.offset + one.place.length]
            assert BODY in (gzip.decompress(data) if one.place.packing else data)
    assert [item.reason for item in items_of(path) if isinstance(item, Refused)] == [UNKNOWN]


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_packages_of_other_folders(tmp_path: Path, method: int) -> None:
    """A package that was unpacked and packed again with its folder (webrecorder/browsertrix, issue 2814), and archives
    as people attach them to issues (machawk1/warcreate, issue 122).
    """
    with zipfile.ZipFile(tmp_path / "a.zip", "w", method) as file:
        file.writestr("coll/pages/pages.jsonl", '{"url": "http://a.example/1", "title": "Listed"}\n')
        file.writestr("coll/archive/a.warc.gz", gzip.compress(record("http://a.example/1")))
        file.writestr("b.WARC", record("http://a.example/2"))
        file.writestr("__MACOSX/._b.WARC", b"\0\5\x16\7")
        file.writestr("coll/warc/readme.txt", "text")
    assert [item.url[-1] for item in items_of(tmp_path / "a.zip") if isinstance(item, Capture)] == ["1", "2"]
    source, _ = find_sources([str(tmp_path / "a.zip")])
    spills = Spills(tmp_path, "sha1")
    assert listed_pages(source, Room(spills), PageTexts(spills, 9))["http://a.example/1"].title == "Listed"


def nested(path: Path, *, method: int = zipfile.ZIP_STORED, **packages: bytes) -> Path:
    """Write a package of packages as Browsertrix gives a collection, or a crawl of several files."""
    with zipfile.ZipFile(path, "w", method) as file:
        for name, data in packages.items():
            file.writestr(f"{name}.wacz", data)
        file.writestr("datapackage.json", '{"profile": "multi-wacz-package"}')
    return path


def test_packages_in_a_package(tmp_path: Path) -> None:
    pages = b'{"format": "json-pages-1.0"}\n{"url": "http://a.example/2", "title": "Listed"}\n'
    one = package(tmp_path / "x", **{"archive_a-warc-gz": gzip.compress(record("http://a.example/1"))}).read_bytes()
    members = gzip.compress(record("http://a.example/2")) + gzip.compress(record("http://a.example/3"))
    files = {"archive_a-warc-gz": members, "archive_b-warc": record("http://a.example/4"), "pages_pages-jsonl": pages}
    two = package(tmp_path / "y", **files).read_bytes()
    packed = package(tmp_path / "z", method=zipfile.ZIP_DEFLATED, archive_a=record()).read_bytes()
    path = nested(tmp_path / "all.wacz", one=one, two=two, broken=one[:-30], packed=packed)
    assert [item.url[-1] for item in items_of(path) if isinstance(item, Capture)] == ["1", "2", "3", "4"]
    assert [item.file.rpartition("!")[2] for item in items_of(path) if isinstance(item, Refused)] == [
        "broken.wacz", "packed.wacz/archive/a",
    ]  # fmt: skip
    for found in captures_in(path):
        data = path.read_bytes()[found.place.offset : found.place.offset + found.place.length]
        assert found.place.linkable
        assert BODY in (gzip.decompress(data) if found.place.packing else data)
    (source,) = [one for one in find_sources([str(path)]) if one.name.endswith("two.wacz/archive/b.warc")]
    spills = Spills(tmp_path, "sha1")
    assert listed_pages(source, Room(spills), PageTexts(spills, 1_000))["http://a.example/2"].title == "Listed"
    path = nested(tmp_path / "deflated.zip", method=zipfile.ZIP_DEFLATED, two=two, broken=one[:-30], packed=packed)
    assert [item.url[-1] for item in items_of(path) if isinstance(item, Capture)] == ["2", "3", "4"]
    assert [item.file.partition("!")[2] for item in items_of(path) if isinstance(item, Refused)] == [
        "broken.wacz", "packed.wacz!archive/a",
    ]  # fmt: skip
    assert not any(found.place.linkable for found in captures_in(path))
    with pytest.raises(ConfigError, match="unpack it"):
        find_sources([str(nested(tmp_path / "zipped.wacz", method=zipfile.ZIP_STORED))])


INDEX = "is an index (CDX); import the archives that it names"
SAVED = "is a page, not an archive; download the archive again, or make one of saved pages with `warcit`"
POINTER = "is a pointer of Git LFS; bring the archive with `git lfs pull`"
MEGAWARC = "describes a megawarc; import its .megawarc.warc.gz"
SESSION = "is a session of a proxy (Charles, mitmproxy); export it as HAR, and import that"


def tar() -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("a.warc.gz"))
    return file.getvalue()


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (gzip.compress(gzip.compress(record())), TWICE),
        (tar(), PACKED),
        (gzip.compress(tar()), PACKED),
        # As `megawarc` of Archive Team writes it: https://github.com/ArchiveTeam/megawarc
        (gzip.compress(b'{"target": {"container": "warc", "offset": 0}, "header_fields": {"uid": 0}}\n'), MEGAWARC),
        (b'[{"status":"COMPLETE","method":"GET"}]', SESSION),
        (b"\xac\xed\x00\x05sr\x00", SESSION),
        (b"1489:9:websocket;0:~8:response;900:6:reason;2:OK;}", SESSION),
        (b" CDX N b a m s k r M S V g\na,b)/ 20140103030321 http://b.a/ text/html 200 X - - 1 333 a.warc.gz\n", INDEX),
        (b"a,b)/ 20140103030321 http://b.a/ text/html 200 X - - 1043 333 a.warc.gz\n", INDEX),
        (gzip.compress(b'a,b)/ 20140103030321 {"url": "http://b.a/", "filename": "a.warc.gz"}\n'), INDEX),
        (b"\xef\xbb\xbf<!DOCTYPE html> <html><!--\n Page saved with SingleFile \n url: http://a.example -->", SAVED),
        (b"<!-- saved from url=(0017)http://a.example/ -->\n<html>", SAVED),
        (b'<?xml version="1.0"?><Error><Code>AccessDenied</Code></Error>', SAVED),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", POINTER),
        (b"From: <Saved by Blink>\r\nMIME-Version: 1.0\r\n", SAVED),
        (b"\x04\x22\x4d\x18" + bytes(20), PACKED),
        (b"BZh91AY&SY", PACKED),
    ],
)
def test_other_files_are_named_with_what_to_do(tmp_path: Path, content: bytes, fault: str) -> None:
    path = write(tmp_path / "any", content)
    with pytest.raises(ConfigError) as raised:
        find_sources([str(path)])
    assert str(raised.value) == f"{path} {fault}"
    beside = write(tmp_path / "a.warc", record())
    assert [source.fault for source in find_sources([str(path), str(beside)])] == [fault, ""]


@pytest.mark.parametrize(
    ("name", "fault"), [("http://a.example/x.html", HTTRACK), ("raw/1_s.txt", FIDDLER), ("raw\\01_s.txt", FIDDLER)]
)
def test_packages_of_other_programs_are_named(tmp_path: Path, name: str, fault: str) -> None:
    with zipfile.ZipFile(tmp_path / "any.zip", "w") as file:
        file.writestr(name, "<p>")
    with pytest.raises(ConfigError, match=re.escape(fault)):
        find_sources([str(tmp_path / "any.zip")])


@pytest.mark.parametrize(
    "content",
    [b"<!DOCTYPE html><p>404", b"version https://git-lfs.github.com/spec/v1\n", gzip.compress(gzip.compress(b"WARC/"))],
)
def test_what_was_downloaded_in_place_of_an_archive_is_named(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(ConfigError, match=r"is (a page|a pointer|packed twice)"):
        find_sources([str(write(tmp_path / "a.warc.gz", content))])


def test_hostile_packages(tmp_path: Path) -> None:
    inner = package(tmp_path / "inner.wacz", archive_a=record()).read_bytes()
    path = package(tmp_path / "a.wacz", **{"archive_-/../../x-warc": record(), "archive_inner-wacz": inner})
    found, refused = items_of(path)
    assert isinstance(found, Capture)
    assert isinstance(refused, Refused)
    assert not (tmp_path.parent / "x.warc").exists()
    data = package(tmp_path / "b.wacz", archive_a=record()).read_bytes()
    with pytest.raises(ConfigError, match="cannot be read"):
        find_sources([str(write(tmp_path / "cut.wacz", data[:-30]))])
    with pytest.raises(ConfigError, match="holds no archive"):
        find_sources([str(package(tmp_path / "c.wacz", other=b""))])


@pytest.mark.heavy
def test_a_package_of_many_files(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.wacz", "w") as file:
        for at in range(30_000):
            file.writestr(f"x/{at}", b"")
        file.writestr("archive/a.warc", record())
    assert len(captures_in(tmp_path / "a.wacz")) == 1


def entry(url: str = "https://a.example/", **content: Any) -> dict[str, Any]:
    return {
        "startedDateTime": "2026-01-01T00:00:00.000Z",
        "request": {"method": "GET", "url": url, "headers": []},
        "response": {
            "status": 200,
            "statusText": "",
            "httpVersion": "h2",
            "headers": [
                {"name": ":status", "value": "200"},
                {"name": "content-type", "value": "text/html; charset=iso-8859-1"},
                {"name": "content-encoding", "value": "br"},
                {"name": "set-cookie", "value": "a=1\nb=2"},
            ],
            "content": {"size": -1, "mimeType": "text/html"} | content,
        },
        "serverIPAddress": "[2001:db8::1]",
        "cache": {"x": ['"]}', "\\", '\\"', {}]},
    }


def har(path: Path, *entries: Any, **log: Any) -> Path:
    return write(
        path,
        json.dumps(
            {"log": {"version": "1.2", "pages": [{"title": '"entries": ['}], **log, "entries": entries}}
        ).encode(),
    )


LOOSE_ENTRIES = {
    # mitmproxy, issue 7377
    "numbers that are none": ('"size": -1', '"size": NaN'),
    "an infinite time": ('"cache"', '"time": Infinity, "cache"'),
    # NeuraLegion/har-sdk, issue 75
    "a header that is a number": ('"value": "200"', '"value": 200'),
    "a header without a name": ('{"name": ":status", ', "{"),
    "a name that is null": ('"name": ":status"', '"name": null'),
    "a header that is a list": ('"value": "200"', '"value": ["200"]'),
    # ericduran/chromeHAR, issue 20
    "the date of the server": ('"startedDateTime": "2026-01-01T00:00:00.000Z"', '"startedDateTime": null'),
    "half a character": ('"text": "x"', '"text": "x\\ud83d"'),
}


@pytest.mark.parametrize("name", LOOSE_ENTRIES)
def test_har_that_is_no_json_or_has_other_types(tmp_path: Path, name: str) -> None:
    dated = entry(text="x")
    dated["response"]["headers"].append({"name": "Date", "value": "Thu, 01 Jan 2026 00:00:00 GMT"})
    old, new = LOOSE_ENTRIES[name]
    text = har(tmp_path / "a.har", dated).read_text()
    assert old in text
    (found,) = captures_in(write(tmp_path / "b.har", text.replace(old, new).encode()))
    assert (found.fetched_at, found.body[:1], found.reply().media_type) == (1767225600.0, b"x", "text/html")


def test_har(tmp_path: Path) -> None:
    coded = base64.b64encode(BODY).decode()
    path = har(
        tmp_path / "a.har",
        entry(text="<p>ä\u20ac"),
        entry(text=coded, encoding="base64", size=1),
        entry(size=5),
        {**entry(), "response": {"status": 0}},
        {"request": {"url": "http://a.example/"}},
        entry("data:text/html,x"),
        {**entry(), "startedDateTime": "never"},
        {"request": 1},
        # PerfCascade's samples: content removed by hand; Firefox 54's status of what it had cached.
        entry(text="MANUALLY REMOVED", encoding="base64"),
        {**entry(), "response": {**entry(text="cached")["response"], "status": 0}},
        {**entry(), "response": {**entry()["response"], "status": -2}},
        entry(text="last"),
    )
    for one in (path, write(tmp_path / "b.har.gz", gzip.compress(path.read_bytes()))):
        items = items_of(one)
        text, raw, missing, *others, removed, cached, failed, last = items
        assert [type(item) for item in others] == [Skipped, Skipped, Skipped, Refused, Refused]
        assert isinstance(failed, Skipped)
        assert failed.kind == "entry without a reply"
        assert isinstance(removed, Capture)
        assert (removed.body, removed.truncated) == (b"", "unspecified")
        assert isinstance(cached, Capture)
        assert (cached.body, cached.status) == (b"cached", 200)
        assert isinstance(text, Capture)
        assert isinstance(raw, Capture)
        assert isinstance(missing, Capture)
        assert isinstance(last, Capture)
        assert (text.body, raw.body, missing.body) == ("<p>ä\u20ac".encode(), BODY, b"")
        assert (text.reply().charset, raw.reply().charset) == ("utf-8", "iso-8859-1")
        assert text.headers[-2:] == (("set-cookie", "a=1"), ("set-cookie", "b=2"))
        assert (text.reply().header("content-encoding"), text.http_version, text.ip) == (None, "2", "2001:db8::1")
        assert (missing.truncated, last.place.offset, last.body) == ("unspecified", 11, b"last")
    (source,) = find_sources([str(path)])
    room = Room(Spills(tmp_path, "sha1"))
    assert list(captures_of(source, room, raw.place)) == list(captures_of(source, room))[2:]
    *before, cut = items_of(write(tmp_path / "cut.har", path.read_bytes()[:-300]))
    assert len(before) == 11
    assert isinstance(cut, Refused)


def test_a_har_whose_content_is_beside_it(tmp_path: Path) -> None:
    """As Playwright writes it with `content: "attach"` (microsoft/playwright#14934)."""
    name = "a" * 40 + ".html"
    write(tmp_path / name, BODY)
    write(tmp_path / "secret.html", b"secret")
    (tmp_path / f"{'c' * 40}.html").mkdir()
    files = (name, "secret.html", f"{'b' * 40}.html", f"{'c' * 40}.html", f"../{tmp_path.name}/{name}")
    path = har(tmp_path / "a.har", *(entry(size=9, _file=file) for file in files))
    found = captures_in(path)
    assert [(one.body, one.truncated) for one in found] == [(BODY, ""), *[(b"", "unspecified")] * 4]
    assert found[0].reply().charset == "iso-8859-1"


@pytest.mark.parametrize("packing", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize("folder", ["", "session/"])
def test_a_har_in_a_package_with_its_content(tmp_path: Path, packing: int, folder: str) -> None:
    """As Playwright writes it to a path that ends in .zip."""
    name = "a" * 40 + ".html"
    path = har(tmp_path / "a.har", entry(size=9, _file=name), entry(size=9, _file=f"{'b' * 40}.html"))
    with zipfile.ZipFile(tmp_path / "a.har.zip", "w", packing) as package:
        package.writestr(f"{folder}{name}", BODY)
        package.write(path, f"{folder}har.har")
    found = captures_in(tmp_path / "a.har.zip")
    assert [(one.body, one.truncated) for one in found] == [(BODY, ""), (b"", "unspecified")]


def test_a_har_without_its_outermost_object(tmp_path: Path) -> None:
    """As Firefox's HAR Export Trigger gives it to scripts (firefox-devtools/har-export-trigger#37)."""
    inner = {"version": "1.2", "creator": {"name": "Firefox"}, "pages": [], "entries": [entry(text="<p>x")]}
    (found,) = captures_in(write(tmp_path / "a.har", json.dumps(inner).encode()))
    assert found.body == b"<p>x"


@pytest.mark.parametrize("codec", ["utf-8-sig", "utf-16", "utf-16-be"])
def test_a_har_of_a_windows_shell(tmp_path: Path, codec: str) -> None:
    """PowerShell writes what it redirects in UTF-16 with a byte order mark."""
    path = har(tmp_path / "a.json", entry(text="<p>\u20ac \U0001f600" * 20_000), entry(text="\u0a0d\u0d0a"))
    mark = "\ufeff" if codec == "utf-16-be" else ""
    text = json.dumps(json.loads(path.read_text()), ensure_ascii=False)
    first, second = captures_in(write(path, (mark + text).encode(codec)))
    assert (first.body.decode(), second.body.decode()) == ("<p>\u20ac \U0001f600" * 20_000, "\u0a0d\u0d0a")
    *_, cut = items_of(write(path, (mark + text).encode(codec)[:-301]))
    assert isinstance(cut, Refused)


@pytest.mark.heavy
def test_a_har_with_half_characters_and_redirects_without_headers(tmp_path: Path) -> None:
    """JSON of browsers escapes half a character of a text that was cut, and provisional headers lack Location."""
    moved = {"status": 302, "headers": [], "redirectURL": "/to"}
    path = har(
        tmp_path / "a.har",
        entry(text="half \ud83d, whole \U0001f600, and \\ud83d"),
        {**entry(), "response": moved},
        {**entry(), "response": {**moved, "headers": [{"name": "location", "value": "/own"}]}},
    )
    half, bare, own = captures_in(path)
    assert half.body.decode() == "half ?, whole \U0001f600, and \\ud83d"
    assert (bare.reply().header("location"), own.reply().header("location")) == ("/to", "/own")


def test_a_har_whose_parts_are_null(tmp_path: Path) -> None:
    empty = {"status": 200, "content": None, "headers": None, "redirectURL": None}
    named = {"status": 200, "headers": [{"name": "Content-Type", "value": None}], "content": {"text": "<p>"}}
    nothing, bare, other = items_of(
        har(tmp_path / "a.har", *({**entry(), "response": response} for response in (None, empty, named)))
    )
    assert isinstance(nothing, Skipped)
    assert isinstance(bare, Capture)
    assert isinstance(other, Capture)
    assert (bare.status, bare.body, other.body) == (200, b"", b"<p>")


def test_a_large_har_is_read_by_pieces(tmp_path: Path) -> None:
    large = json.dumps(entry(text='\\"x' * 500_000)).encode()
    with (tmp_path / "a.har").open("wb") as file:
        file.write(b'\xef\xbb\xbf{"log": {"entries": [')
        file.write(b",\n".join([large] * 20))
        file.write(
            b',{"x": "' + b'\\"yyyyyyyyyy' * 6_000_000 + b'"},' + json.dumps(entry(text="last")).encode() + b"]}}"
        )
    tracemalloc.start()
    *found, refused, last = items_of(tmp_path / "a.har")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(found) == 20
    assert isinstance(refused, Refused)
    assert isinstance(last, Capture)
    assert last.body == b"last"
    assert peak < 250_000_000  # 20 bodies of 1 MB, and one entry.


def depths_in(path: Path) -> dict[str, int]:
    (source,) = find_sources([str(path)])
    spills = Spills(path.parent, "sha1")
    pages = listed_pages(source, Room(spills), PageTexts(spills, 1_000))
    return {url: page.depth for url, page in pages.items() if page.depth is not None}


def listing(*lines: object) -> bytes:
    head = {"format": "json-pages-1.0", "id": "pages", "title": "All Pages"}
    return b"".join(json.dumps(line).encode() + b"\n" for line in (head, *lines))


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_lists_of_pages_say_their_depth(tmp_path: Path, method: int) -> None:
    urls = [f"http://a.example/{number}" for number in range(5)]
    path = package(
        tmp_path / "a.wacz",
        method=method,
        **{
            "archive_a-warc-gz": b"".join(gzip.compress(record(url)) for url in urls),
            "pages_pages-jsonl": listing({"url": f"{urls[0]}#top"}, {"url": urls[1], "seed": True, "depth": 7}, 5, []),
            "pages_extraPages-jsonl": listing(
                {"url": urls[2], "depth": 2}, {"url": urls[3]}, {"url": urls[4], "depth": -1}
            ),
        },
    )
    assert depths_in(path) == dict(zip(urls, [0, 0, 2], strict=False))


@pytest.mark.parametrize("bad", [b"", b"\xff{", b'{"url": 1}\n', b"[" * 100_000, b'{"url": "x"'])
def test_damaged_lists_of_pages_cost_nothing(tmp_path: Path, bad: bytes) -> None:
    path = package(tmp_path / "a.wacz", **{"archive_a-warc": record(), "pages_pages-jsonl": bad})
    assert depths_in(path) == {}
    assert len(captures_in(path)) == 1
