"""Page records: pictures of rendered pages and what they are made of; replay of a rendered page."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import struct
import subprocess
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import Error, Page, sync_playwright

from gossamer.stages.archive.cdxj import entries_of_rendered
from tests.acceptance.conftest import Crawl
from tests.acceptance.mixed import FRAMEWORKS
from tests.acceptance.noting import Site
from tests.acceptance.replay import Pywb
from tests.acceptance.test_render import APP, SHELL, records
from tests.answering import serving
from tests.chromium import CHROMIUM_OPTIONS, launch_chromium, require_chromium

pytestmark = [pytest.mark.acceptance, pytest.mark.paced, pytest.mark.timeout(600)]
OPTIONS = ("--render", "always", "--allow-private", "--quiet", "--politeness", "own", "--delay", "0")
RED = "<!doctype html><title>Red</title><body style='background:red'><script src=/app.js></script>"
LOADS_MAX = 20
GREEN = "document.body.style.background = 'rgb(0, 255, 0)';"


@pytest.mark.promise(
    "Files and exports",
    "On request (`render.page_records`) a rendered page has `urn:view:`, `urn:thumbnail:` and `urn:pageinfo:` records.",
)
@pytest.mark.long
def test_a_page_has_the_records_that_are_requested(
    command: Crawl, tmp_path: Path, site: Callable[[dict[str, str]], Site]
) -> None:
    server = site({"/": RED, "/app.js": GREEN})
    wanted = 'render.page_records=["view","thumbnail","pageinfo"]'
    done = command("crawl", f"{server.url}/", "-o", tmp_path / "c", *OPTIONS, "--set", wanted)
    assert done.returncode == 0, done.stderr
    found = records(tmp_path / "c")
    by_url = {fields.get("WARC-Target-URI", ""): (kind, fields, block) for kind, fields, block in found}
    [conversion] = [fields for kind, fields, _ in found if kind == "conversion"]
    own = {name: by_url[f"urn:{name}:{server.url}/"] for name in ("view", "thumbnail", "pageinfo")}
    assert {kind for kind, *_ in own.values()} == {"resource"}
    assert {fields["WARC-Page-ID"] for _, fields, _ in own.values()} == {conversion["WARC-Page-ID"]}
    types = {name: fields["Content-Type"] for name, (_, fields, _) in own.items()}
    assert types == {"view": "image/png", "thumbnail": "image/jpeg", "pageinfo": "application/json"}
    view = own["view"][2]
    assert struct.unpack(">II", view[16:24]) == (1280, 1024)
    # The first row of a PNG: what the filter takes its first pixel from is 0.
    rows = zlib.decompress(b"".join(chunk for kind, chunk in chunks(view) if kind == b"IDAT"))
    assert rows[1:4] == b"\x00\xff\x00"
    assert own["thumbnail"][2][:2] == b"\xff\xd8"
    assert len(own["thumbnail"][2]) < len(view)
    about = json.loads(own["pageinfo"][2])
    assert (about["pageid"], about["url"]) == (conversion["WARC-Page-ID"], f"{server.url}/")
    assert about["urls"] == {
        f"{server.url}/": {"status": 200, "mime": "text/html", "type": "document"},
        f"{server.url}/app.js": {"status": 200, "mime": "text/javascript", "type": "script"},
    }
    verified = command("verify", tmp_path / "c", "--deep")
    assert verified.returncode == 0, verified.stdout
    forgotten = command("forget", tmp_path / "c", f"{server.url}/", "--all")
    assert forgotten.returncode == 0, forgotten.stderr
    left = {fields.get("WARC-Target-URI", "") for _, fields, _ in records(tmp_path / "c")}
    assert [url for url in left if url.startswith("urn:") or url == f"{server.url}/"] == []
    assert "urn:" not in (tmp_path / "c/index.cdxj").read_text()


@pytest.mark.promise(
    "Files and exports", "A rendered page replays with what its scripts have loaded, by the crawl's own index."
)
@pytest.mark.long
def test_a_rendered_page_replays_with_its_resources(
    command: Crawl, tmp_path: Path, site: Callable[[dict[str, str]], Site]
) -> None:
    server = site({"/": SHELL, "/app.js": APP, "/api/text.json": '{"text": "Brought by a script."}'})
    done = command(
        "crawl", f"{server.url}/", "-o", tmp_path / "c", *OPTIONS, "--max-pages", "1",
        "--set", 'render.page_records=["view","pageinfo"]',
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = (tmp_path / "c/index.cdxj").read_text().splitlines()
    keys = [line.split()[0] for line in lines]
    host = f"1,0,0,127:{server.url.rpartition(':')[2]}"
    expected = [f"{host})/", f"{host})/api/text.json", f"{host})/app.js"]
    assert keys == sorted([*expected, f"urn:pageinfo:{server.url}/", f"urn:view:{server.url}/"])
    for line in lines:
        place = json.loads(line[line.index("{") :])
        with (tmp_path / "c/warc" / place["filename"]).open("rb") as file:
            file.seek(int(place["offset"]))
            record = gzip.decompress(file.read(int(place["length"])))
        assert f"WARC-Target-URI: {place['url']}\r\n".encode() in record
    exported = command("export", tmp_path / "c", "--to", "wacz", "-o", tmp_path / "c.wacz")
    assert exported.returncode == 0, exported.stderr
    with zipfile.ZipFile(tmp_path / "c.wacz") as wacz:
        assert sorted(gzip.decompress(wacz.read("indexes/index.cdx.gz")).decode().splitlines()) == lines
        listed = [json.loads(line) for line in wacz.read("pages/pages.jsonl").splitlines()]
    assert [one["url"] for one in listed[1:]] == [f"{server.url}/"]
    [warc] = (tmp_path / "c/warc").iterdir()
    whole, damaged = warc.read_bytes(), tmp_path / "damaged.warc.gz"
    last = max(int(json.loads(line[line.index("{") :])["offset"]) for line in lines)
    for data in (whole[: last + 40], whole[:last] + b"x" * 60):
        damaged.write_bytes(data)
        assert len(lines) - 2 <= len(list(entries_of_rendered([damaged]))) <= len(lines)
    pywb = Pywb(tmp_path / "pywb")
    warcs = sorted((tmp_path / "c/warc").iterdir())
    pywb.indexed("ours", warcs, tmp_path / "c/index.cdxj")
    pywb.added("theirs", warcs)
    (pywb.at / "config.yaml").write_text("framed_replay: false\n")
    server.close()
    assert "<p>Brought by a script.</p>" in replayed_in_browser(
        tmp_path / "c.wacz", f"{server.url}/", tmp_path / "served"
    )
    with pywb:
        # The index that pywb makes lists the rendered document under the page's address too, and leads there.
        assert pywb.get("ours", f"{server.url}/", gzip=False).body.decode() == SHELL
        for collection in ("ours", "theirs"):
            assert pywb.get(collection, f"{server.url}/app.js", gzip=False).body.decode() == APP
            shown = seen_in_chromium(f"http://127.0.0.1:{pywb.port}/{collection}/{server.url}/", tmp_path)
            assert "<p>Brought by a script.</p>" in shown


class Folder(SimpleHTTPRequestHandler):
    """Serves the files of a folder, and no lists of them: the replayer's own worker answers for its folder."""

    def list_directory(self, path: str | os.PathLike[str]) -> None:
        self.send_error(404)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


def replayed_in_browser(wacz: Path, url: str, folder: Path, words: str = "Brought") -> str:
    """Return the document that ReplayWeb.page shows of an address of a WACZ; empty if it lacks `words`."""
    package = FRAMEWORKS / "replaywebpage"
    (folder / "replay").mkdir(parents=True)
    shutil.copy(package / "ui.js", folder)
    shutil.copy(package / "sw.js", folder / "replay")
    shutil.copy(wacz, folder / "c.wacz")
    (folder / "page.html").write_text(
        f'<!doctype html><script src="ui.js"></script><replay-web-page source="c.wacz" url="{url}" embed="replayonly" '
        'replayBase="./replay/"></replay-web-page>'
    )
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Folder, directory=str(folder)))
    with serving(server), sync_playwright() as playwright:
        browser = launch_chromium(playwright, "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1")
        page = browser.new_page()
        for load in range(1, LOADS_MAX):  # The first one may come before the worker answers.
            page.goto(f"http://127.0.0.1:{server.server_address[1]}/page.html")
            for _ in range(50 * load):  # On a busy machine one takes long.
                page.wait_for_timeout(100)
                if words in (found := replayed_document(page, url)):
                    return found
    return ""


def replayed_document(page: Page, url: str) -> str:
    """Return the document of the frame that replays an address; empty where it is not there so far."""
    frames = [frame for frame in page.frames if f"mp_/{url}" in frame.url]
    with suppress(Error):  # It goes on to another document.
        return "".join(frame.content() for frame in frames)
    return ""


def chunks(png: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = 8
    while at < len(png):
        (size,) = struct.unpack(">I", png[at : at + 4])
        yield png[at + 4 : at + 8], png[at + 8 : at + 8 + size]
        at += 12 + size


def seen_in_chromium(url: str, folder: Path) -> str:
    """Return the document that Chromium shows of an address."""
    done = subprocess.run(
        [require_chromium(), "--headless", *CHROMIUM_OPTIONS, "--virtual-time-budget=10000", "--dump-dom",
         f"--user-data-dir={folder}/browser", url],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    return done.stdout
