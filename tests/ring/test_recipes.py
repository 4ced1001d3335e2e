"""Recipes: a site with known faults, all of which `check` finds; a site archived as WACZ, and as a corpus."""

from __future__ import annotations

import csv
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import tomllib
import zipfile
from collections import Counter
from collections.abc import Iterator
from functools import partial
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar
from xml.etree import ElementTree as ET

import pyarrow.parquet as pq
import pytest

import gossamer
from gossamer.api.reading import SiteFault, faults_of
from gossamer.cli.watching import Receiver, RssFile, post
from tests import commands
from tests.answering import Answering, serving
from tests.cli.conftest import until
from tests.ring.hostile import MIB, Answer, HostileServer, noise, whole

Done = subprocess.CompletedProcess[str]
WAY = 150
QUICK = ("--allow-private", "--politeness", "own", "--quiet", "--set", "frontier.retry_s_first=0.1")


def page(title: str, *links: str, description: str = "About {}.", more: str = "") -> Answer:
    description = description.format(title)
    meta = f'<meta name="description" content="{description}">' if description else ""
    anchors = "".join(f'<p><a href="{link}">{link}</a>' for link in links)
    words = f"<main><h1>{title}</h1><p>A sentence about {title} that is long enough to be the main text.</p></main>"
    return whole(f"<!doctype html><html lang=en><title>{title}</title>{meta}{words}{anchors}{more}".encode())


def moved(target: str) -> Answer:
    return Answer(lambda: (b"",), status=301, headers=(("Location", target),))


@pytest.fixture(scope="module")
def server() -> Iterator[HostileServer]:
    answers = {
        "/": page(
            "Home", "/a", "/b", "/c", "/gone", "/r1", "/l1", "/one-hop", "/self", "/bare",
            "/old", more="<img src=/no.png>"
        ),
        "/a": page("Same", "/gone", "/"), "/b": page("Same", "/r1", "/old"), "/c": page("", "/x<y>"),
        "/bare": page("Bare", description=""), "/x%3Cy%3E": page("Odd <b>title</b>"),
        "/r1": moved("/r2"), "/r2": moved("/r3"), "/r3": moved("/end"), "/end": page("End"),
        "/one-hop": moved("/end"), "/l1": moved("/l2"), "/l2": moved("/l1"), "/self": moved("/self"),
        "/orphan": page("Orphan", "/orphan"), "/old": moved("/moved-away"),
    }  # fmt: skip
    with HostileServer(answers) as server:
        answers["/robots.txt"] = whole(f"Sitemap: {server.root}sitemap.xml\n".encode(), "text/plain")
        places = "".join(f"<url><loc>{server.root}{name}</loc></url>" for name in ("", "a", "orphan"))
        answers["/sitemap.xml"] = whole(f"<urlset>{places}</urlset>".encode(), "application/xml")
        yield server


def run(directory: Path, *words: str) -> Done:
    environment = {**os.environ, "PYTHONPATH": str(Path(gossamer.__file__).parents[1])}
    command = [sys.executable, "-m", "gossamer", *words]
    return subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True, timeout=100)


def errors_of(directory: Path) -> list[SiteFault]:
    """The errors of a check, and the links that were not checked."""
    return [one for one in faults_of(directory) if one.severity in ("error", "")]


@pytest.fixture(scope="module")
def checked(server: HostileServer, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Done]:
    directory = tmp_path_factory.mktemp("checked")
    return directory, run(directory, "check", server.root, "--html", "f.html", "--csv", "f.csv", *QUICK)


@pytest.mark.promise("Operation", "`gossamer check` finds broken links, redirects, titles, descriptions and orphans.")
def test_check_finds_every_fault_and_no_other(checked: tuple[Path, Done], server: HostileServer) -> None:
    directory, done = checked
    root = server.root
    assert done.returncode == 1, done.stderr
    assert errors_of(directory / "check") == [
        SiteFault("broken_link", f"{root}gone", "HTTP 404", [root, f"{root}a"]),
        SiteFault("broken_link", f"{root}moved-away", f"HTTP 404, redirected from {root}old", [root, f"{root}b"]),
        SiteFault("broken_link", f"{root}no.png", "HTTP 404", [root]),
        SiteFault("redirect_loop", f"{root}l1", f"{root}l1 → {root}l2 → {root}l1", [root]),
        SiteFault("redirect_loop", f"{root}self", f"{root}self → {root}self", [root]),
        SiteFault("redirect_chain", f"{root}r1", f"{root}r1 → {root}r2 → {root}r3 → {root}end", [root, f"{root}b"]),
        SiteFault("duplicate_title", f"{root}a", "Same", [f"{root}b"]),
        SiteFault("missing_title", f"{root}c"),
        SiteFault("missing_description", f"{root}bare"),
        SiteFault("orphan", f"{root}orphan"),
    ]


@pytest.mark.heavy
def test_the_reports_hold_every_fault(checked: tuple[Path, Done], server: HostileServer) -> None:
    directory, done = checked
    lines = done.stdout.splitlines()
    assert lines[-1] == "10 faults"
    assert "Broken links: 3" in lines
    assert f"  {server.root}gone  HTTP 404" in lines
    assert f"      {server.root}a" in lines
    records = list(csv.DictReader((directory / "f.csv").read_text().splitlines()))
    assert {one["fault"] for one in records} == {one.kind for one in faults_of(directory / "check")}
    shown = (directory / "f.html").read_text()
    assert "<h2>Redirect loops: 2</h2>" in shown
    assert shown.count("<script") == 1
    assert "x<y" not in shown


@pytest.mark.heavy
@pytest.mark.promise("Operation", "`gossamer check` finishes an interrupted check when it is repeated.")
@pytest.mark.long
def test_an_interrupted_check_is_finished_by_the_same_command(tmp_path: Path) -> None:
    begun: list[subprocess.Popen[bytes]] = []

    def interrupting() -> Iterator[bytes]:
        if begun:
            begun.pop().send_signal(signal.SIGINT)
        yield b"<!doctype html><title>A</title><a href=/0>on</a>"

    # Page after page, so that it is not at its end when the signal arrives.
    way = {f"/{number}": page("On the way", f"/{number + 1}") for number in range(WAY)}
    answers = {"/": page("Home", "/a"), "/a": Answer(interrupting), **way, f"/{WAY}": page("End", "/gone")}
    with HostileServer(answers) as server:
        words = [sys.executable, "-m", "gossamer", "check", server.root, *QUICK]
        environment = {**os.environ, "PYTHONPATH": str(Path(gossamer.__file__).parents[1])}
        first = subprocess.Popen(words, cwd=tmp_path, env=environment, stdout=subprocess.PIPE)
        begun.append(first)
        shown, _ = first.communicate(timeout=60)
        assert (first.returncode, b"fault" in shown) == (130, False)
        done = run(tmp_path, *words[3:])
        assert (done.returncode, f"{server.root}gone  HTTP 404" in done.stdout) == (1, True)
        again = run(tmp_path, *words[3:])
        assert (again.returncode, "check already holds a crawl" in again.stderr) == (2, True)
    records = list(csv.DictReader((tmp_path / "check/faults.csv").read_text().splitlines()))
    assert {one["fault"] for one in records} >= {"broken_link"}
    assert commands.run("verify", str(tmp_path / "check"))[0] == 0


def test_check_looks_for_the_folders_of_its_files_first(tmp_path: Path) -> None:
    done = run(tmp_path, "check", "http://127.0.0.1:9/", "--csv", "no/faults.csv", *QUICK)
    assert done.returncode == 2
    assert done.stderr == "gossamer: there is no directory no; make it, or name another file than no/faults.csv\n"
    done = run(tmp_path, "check", "http://127.0.0.1:9/", "--html", ".", *QUICK)
    assert (done.returncode, done.stderr) == (2, "gossamer: . is a directory; name a file in it\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.heavy
def test_check_of_a_sound_site_ends_with_status_0(tmp_path: Path) -> None:
    with HostileServer({"/": page("Home", "/a"), "/a": page("A", "/")}) as server:
        done = run(tmp_path, "check", server.root, "-o", "sound", *QUICK)
    assert (done.returncode, done.stdout) == (0, "\nNo faults were found.\n")


@pytest.mark.heavy
def test_check_lists_refusals_as_not_checked(tmp_path: Path) -> None:
    refused = {"/paid": Answer(lambda: (b"",), status=402), "/barred": Answer(lambda: (b"",), status=451)}
    with HostileServer({"/": page("Home", "/paid", "/barred"), **refused}) as server:
        done = run(tmp_path, "check", server.root, "-o", "check", *QUICK)
    assert [(one.kind, one.url, one.detail) for one in faults_of(tmp_path / "check")] == [
        ("not_checked", f"{server.root}barred", "legally_blocked: HTTP 451"),
        ("not_checked", f"{server.root}paid", "payment_required: HTTP 402"),
    ]
    assert done.returncode == 0


@pytest.mark.heavy
def test_check_of_seeds_that_are_refused_fails(tmp_path: Path) -> None:
    answers = {
        "/robots.txt": whole(b"User-agent: *\nDisallow: /shut", "text/plain"),
        "/paid": Answer(lambda: (b"",), status=402),
    }
    with HostileServer(answers) as server:
        seeds = [f"{server.root}{name}" for name in ("paid", "shut")]
        done = run(tmp_path, "check", *seeds, "-o", "check", "--html", "page.html", *QUICK)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (1, "2 faults")
    assert [(one.kind, one.url, one.detail) for one in faults_of(tmp_path / "check")] == [
        ("seed_not_checked", seeds[0], "payment_required: HTTP 402"),
        ("seed_not_checked", seeds[1], "robots_denied: robots.txt disallows it"),
    ]
    assert "Seeds that could not be checked" in (tmp_path / "page.html").read_text()


@pytest.fixture(scope="module")
def webs() -> Iterator[tuple[HostileServer, HostileServer, str]]:
    """A site, another that it links to, and the root of a host that does not answer."""
    with HostileServer({}) as site, HostileServer({}, "127.0.0.2") as away, socket.socket() as closed:
        closed.bind(("127.0.0.3", 0))  # Nothing listens: connections are refused.
        far, dead = away.root, f"http://127.0.0.3:{closed.getsockname()[1]}/"
        site.answers |= {
            "/": page("Home", "/a", "/leave", *(far + one for one in ("ok", "gone", "r1", "shut", "back", "ok.zip"))),
            "/a": page("A", f"{far}gone", f"{dead}x", more=f"<iframe src={far}framed></iframe>"),
            "/leave": moved(f"{far}gone-too"), "/only": page("Only by the other site", "/deep"), "/deep": page("Deep"),
        }  # fmt: skip
        away.answers |= {
            "/robots.txt": whole(f"User-agent: *\nDisallow: /shut\nSitemap: {far}map.xml".encode(), "text/plain"),
            "/map.xml": whole(f"<urlset><url><loc>{far}mapped</loc></url></urlset>".encode(), "application/xml"),
            "/ok": page("Home", "/never", f"{site.root}never", description="", more="<img src=/never.png>"),
            "/r1": moved("/r2"), "/r2": moved("/end"), "/end": page(""), "/back": moved(f"{site.root}only"),
            "/framed": page("", description=""), "/ok.zip": Answer(noise(64), "application/zip"),
        }  # fmt: skip
        yield site, away, dead


SOON = ("--set", "robots.robots_wait_max_s=0.5", "--set", "robots.unanswered_first_s=0.1")


@pytest.mark.heavy
@pytest.mark.promise("Operation", "`gossamer check` finds broken links to other sites, with one polite request each.")
def test_check_finds_broken_links_to_other_sites(
    webs: tuple[HostileServer, HostileServer, str], tmp_path: Path
) -> None:
    (site, away, dead), far, root = webs, webs[1].root, webs[0].root
    done = run(tmp_path, "check", root, *QUICK, *SOON)
    assert done.returncode == 1, done.stderr
    *faults, shut = errors_of(tmp_path / "check")
    assert [(one.kind, one.url, one.pages) for one in faults] == [
        ("broken_link", f"{far}gone", [root, f"{root}a"]),
        ("broken_link", f"{far}gone-too", [root]),
        ("broken_link", f"{dead}x", [f"{root}a"]),
        ("redirect_chain", f"{far}r1", [root]),
    ]
    assert "could not fetch" in faults[2].detail
    assert shut == SiteFault("not_checked", f"{far}shut", "robots_denied: robots.txt disallows it", [root])
    assert "Links that could not be checked: 1" in done.stdout
    assert done.stdout.endswith("\n4 faults\n")
    assert away.counts == Counter(
        f"/{name}" for name in ("robots.txt", "ok", "gone", "gone-too", "r1", "r2", "end", "back", "framed", "ok.zip")
    )
    assert set(site.counts) == {"/robots.txt", "/", "/a", "/leave", "/only", "/deep"}, "links of /ok are not followed"
    received = {row["url"]: row["wire_bytes"] for row in rows(tmp_path / "check/pages")}
    assert int(str(received[f"{far}ok.zip"])) < 4 * MIB, "the rest of the content is not requested"


@pytest.mark.heavy
def test_links_that_could_not_be_checked_are_no_faults(tmp_path: Path) -> None:
    with HostileServer({}) as site, HostileServer({}, "127.0.0.2") as away:
        site.answers |= {
            "/": page("Home", f"{away.root}a", "/busy"),
            "/busy": whole(b"", "text/plain")._replace(status=429),
        }
        away.answers["/robots.txt"] = whole(b"", "text/plain")._replace(status=500)
        waits = ("robots.retry_first_s=0.1", "politeness.backoff_s_first=0.1")
        done = run(tmp_path, "check", site.root, *QUICK, *SOON, *(word for wait in waits for word in ("--set", wait)))
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "No faults were found.")
    assert "Links that could not be checked: 2" in done.stdout
    assert f"  {site.root}busy  HTTP 429\n      {site.root}\n" in done.stdout
    assert site.counts["/busy"] == 2
    assert away.counts["/a"] == 0


@pytest.mark.heavy
@pytest.mark.parametrize("is_own", [False, True])
def test_what_other_sites_refuse_to_crawlers_is_no_fault(tmp_path: Path, is_own: bool) -> None:
    with HostileServer({}) as site, HostileServer({}, "127.0.0.2") as away:
        refused = {f"/{status}": whole(b"", "text/plain")._replace(status=status) for status in (401, 403, 999)}
        there = site if is_own else away
        there.answers |= refused
        site.answers["/"] = page("Home", *[f"{there.root}{path[1:]}" for path in refused])
        done = run(tmp_path, "check", site.root, *QUICK, *SOON)
    said = "Broken links: 3" if is_own else "Links that could not be checked: 3"
    assert (done.returncode, said in done.stdout) == (int(is_own), True), done.stdout


@pytest.mark.heavy
@pytest.mark.parametrize("is_own", [False, True])
def test_a_check_does_not_wait_for_what_other_sites_put_off(tmp_path: Path, is_own: bool) -> None:
    with HostileServer({}) as site, HostileServer({}, "127.0.0.2") as away:
        there = site if is_own else away
        there.answers["/busy"] = whole(b"", "text/plain")._replace(status=429, headers=(("Retry-After", "7200"),))
        site.answers["/"] = page("Home", f"{there.root}busy")
        done = run(tmp_path, "check", site.root, *QUICK, *SOON, "--set", "politeness.retry_after_s_max=86400")
    assert done.returncode == (4 if is_own else 0), done.stderr
    assert "Links that could not be checked: 1" in done.stdout


@pytest.mark.heavy
def test_check_leaves_other_sites_alone_without_outlinks(
    webs: tuple[HostileServer, HostileServer, str], tmp_path: Path
) -> None:
    site, away, _ = webs
    before = away.counts.copy()
    done = run(tmp_path, "check", site.root, *QUICK, "--set", "scope.outlinks=false", "--set", "scope.embeds=false")
    assert (done.returncode, away.counts) == (0, before), done.stdout


@pytest.mark.heavy
def test_archive_makes_a_package_with_what_pages_embed(server: HostileServer, tmp_path: Path) -> None:
    done = run(tmp_path, "archive", f"{server.root}a", "-o", "site", *QUICK)
    assert (done.returncode, done.stderr) == (0, "")
    with zipfile.ZipFile(tmp_path / "site.wacz") as package:
        assert "datapackage.json" in package.namelist()
    outcomes = {row["url"]: row["link_type"] for row in rows(tmp_path / "site/pages")}
    assert outcomes[f"{server.root}no.png"] == "embed"


@pytest.mark.heavy
@pytest.mark.long
def test_a_crawl_in_the_working_directory_has_its_package_beside_it(server: HostileServer, tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    done = run(tmp_path / "site", "archive", f"{server.root}a", "--max-pages", "1", "-o", ".", *QUICK)
    assert (done.returncode, done.stderr) == (0, "")
    assert zipfile.is_zipfile(tmp_path / "site.wacz")
    for words in (["export", ".", "--to", "jsonl", "-o", "."], ["report", ".", "--html", "."]):
        done = run(tmp_path / "site", *words)
        assert (done.returncode, done.stderr.startswith("gossamer: . is a directory; name a")) == (2, True), done.stderr


@pytest.mark.heavy
def test_a_recipe_takes_its_seeds_from_a_file(server: HostileServer, tmp_path: Path) -> None:
    (tmp_path / "seeds.txt").write_text(f"{server.root}a\n")
    done = run(tmp_path, "check", "--seeds", "seeds.txt", "--html", "f.html", *QUICK)
    assert "Broken links" in done.stdout, done.stderr
    assert "<title>" in (tmp_path / "f.html").read_text()
    done = run(tmp_path, "mirror", *QUICK)
    assert (done.returncode, "no seeds; name a URL" in done.stderr) == (2, True), done.stderr


@pytest.mark.heavy
def test_corpus_writes_markdown_and_parquet(server: HostileServer, tmp_path: Path) -> None:
    done = run(tmp_path, "corpus", f"{server.root}a", "--max-pages", "5", *QUICK)
    assert (done.returncode, done.stderr) == (0, "")
    assert [file for file in (tmp_path / "corpus-markdown").rglob("*.md") if "# Same" in file.read_text()]
    columns = {name for row in rows(tmp_path / "corpus-parquet/pages") for name in row}
    assert {"main_text", "markdown", "description", "language"} <= columns


def rows(folder: Path) -> list[dict[str, object]]:
    return [row for file in sorted(folder.glob("*.parquet")) for row in pq.read_table(file).to_pylist()]


@pytest.mark.parametrize("recipe", ["archive", "mirror", "corpus", "check", "watch"])
def test_show_config_prints_the_preset_and_does_nothing(recipe: str, tmp_path: Path) -> None:
    done = run(
        tmp_path, recipe, "http://e.example/", "--show-config", "--max-depth", "3", "--set", "scope.embeds=false"
    )
    shown = tomllib.loads(done.stdout)
    assert (done.returncode, list(tmp_path.iterdir())) == (0, [])
    assert (shown["scope"]["depth_max"], shown["scope"]["embeds"]) == (3, False)
    assert shown["output"]["directory"] == recipe
    assert ("metadata" in shown["process"]["modules"]) == (recipe in ("corpus", "check"))
    assert shown["crawl"]["mode"] == ("continuous" if recipe == "watch" else "batch")


class Shop(Answering):
    """A page whose price rises with its second visit, and a receiver of changes that fails once."""

    visits = 0
    posted: ClassVar[list[dict[str, object]]] = []
    refused = False

    def get(self) -> None:
        Shop.visits += self.path == "/"
        body = f"<!doctype html><title>Shop</title><p class=price>{10 + (Shop.visits > 1)}</p>".encode()
        self.answer(200 if self.path == "/" else 404, body if self.path == "/" else b"")

    def do_POST(self) -> None:  # noqa: N802 - the name that the server calls
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if Shop.refused:
            Shop.posted.extend(json.loads(body)["changes"])
        self.send_response(200 if Shop.refused else 500)
        Shop.refused = True
        self.send_header("Content-Length", "0")
        self.end_headers()


@pytest.mark.heavy
@pytest.mark.promise("Continuous crawls", "`gossamer watch` reports changes to a command, a webhook and a feed.")
def test_watch_reports_a_changed_price(tmp_path: Path) -> None:
    Shop.visits, Shop.posted, Shop.refused = 0, [], False  # Tests come in any order.
    (tmp_path / "shop.toml").write_text('[extract.offer.fields]\nprice = { css = ".price", type = "integer" }\n')
    quick = (
        "revisit.interval_s_mean=0.5", "revisit.interval_s_min=0.2", "revisit.interval_s_max=1.0", "robots.obey=false",
    )  # fmt: skip
    with ThreadingHTTPServer(("127.0.0.1", 0), Shop) as server:
        serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        serving.start()
        root = f"http://127.0.0.1:{server.server_address[1]}/"
        words = ["watch", root, "-c", "shop.toml", "--every", "0.3", "--rss", "feed.xml", "--webhook", f"{root}hook"]
        words += ["--command", "cat >> changes.jsonl", *QUICK, *(word for one in quick for word in ("--set", one))]
        environment = {**os.environ, "PYTHONPATH": str(Path(gossamer.__file__).parents[1])}
        with subprocess.Popen(
            [sys.executable, "-m", "gossamer", *words], cwd=tmp_path, env=environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        ) as process:  # fmt: skip
            log = tmp_path / "changes.jsonl"
            try:
                until(lambda: log.exists() and '"field"' in log.read_text() and Shop.posted)
            finally:
                process.send_signal(signal.SIGINT)
                out, err = process.communicate(timeout=60)
        server.shutdown()
        serving.join()
    [change] = [one for one in map(json.loads, log.read_text().splitlines()) if one["change"] == "field"]
    assert (change["url"], change["field"], change["before"], change["after"]) == (root, "price", "10", "11")
    assert [one for one in Shop.posted if one["change"] == "field"] == [change], "sent again after a failure, once"
    assert "--webhook failed (HTTP Error 500" in err
    assert process.returncode == 130
    assert f"offer 0: price changed from 10 to 11 ({root})" in out
    feed = ET.parse(tmp_path / "feed.xml")
    assert f"offer 0: price changed from 10 to 11 ({root})" in [one.text for one in feed.findall(".//item/title")]


class Odd(Answering):
    """A receiver that redirects, and then answers what is no HTTP; what a redirect leads to is fine."""

    requested: ClassVar[list[str]] = []

    def get(self) -> None:
        Odd.requested.append(self.path)
        self.answer(200)

    def do_POST(self) -> None:  # noqa: N802 - the name that the server calls
        Odd.requested.append(f"POST {self.path}")
        self.rfile.read(int(self.headers["Content-Length"]))
        if self.path == "/moved":
            self.answer(302, b"", ("Location", "/elsewhere"))
        else:
            self.wfile.write(b"nonsense\r\n\r\n")
            self.close_connection = True


def test_a_receiver_that_redirects_or_answers_nonsense_has_failed(capsys: pytest.CaptureFixture[str]) -> None:
    Odd.requested.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Odd)
    with serving(server):
        for path, reason in (("moved", "HTTP Error 302: Found"), ("nonsense", "nonsense")):
            address = f"http://127.0.0.1:{server.server_address[1]}/{path}"
            receiver = Receiver("--webhook", partial(post, address))
            receiver.take([{"change": "changed"}])
            assert f"--webhook failed ({reason}" in capsys.readouterr().err
            receiver.take([])
            assert "1 change is sent again with the next report" in capsys.readouterr().err
    assert Odd.requested == ["POST /moved", "POST /moved", "POST /nonsense", "POST /nonsense"]


def test_a_feed_that_could_not_be_written_holds_each_change_once(tmp_path: Path) -> None:
    receiver = Receiver("--rss", RssFile(tmp_path / "later" / "feed.xml", "http://e.example/").add)
    receiver.take([{"change": "changed", "url": "http://e.example/a", "at": "2026-01-01T00:00:00.000000Z"}])
    (tmp_path / "later").mkdir()
    receiver.take([])
    assert len(ET.parse(tmp_path / "later" / "feed.xml").findall(".//item")) == 1


@pytest.mark.heavy
def test_a_site_without_changes_has_a_feed_without_items_and_a_crawl_that_is_refused_none(tmp_path: Path) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Shop) as server:
        serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        serving.start()
        root = f"http://127.0.0.1:{server.server_address[1]}/"
        words = ("watch", root, "--rss", str(tmp_path / "feed.xml"), *QUICK, "-o", str(tmp_path / "watch"))
        assert commands.run(*words, "--set", "robots.obey=perhaps")[0] == 2
        assert not (tmp_path / "feed.xml").exists()
        for earlier in ("", "<rss>with items</rss>"):
            (tmp_path / "feed.xml").write_text(earlier) if earlier else None
            status, _, err = commands.run(*words, "--max-pages", "1")
            assert (status, err) == (0, "")
        assert (tmp_path / "feed.xml").read_text() == "<rss>with items</rss>", "it stays until there are others"
        (tmp_path / "feed.xml").unlink()
        assert commands.run(*words, "--max-pages", "1")[0] == 0
        server.shutdown()
        serving.join()
    channel = ET.parse(tmp_path / "feed.xml").find("channel")
    assert channel is not None
    assert (channel.findtext("link"), channel.findall("item")) == (root, [])


@pytest.mark.parametrize(
    ("words", "mistake"),
    [
        (("--events", "changed,sold"), "--events sold: expected appeared, changed, vanished, field"),
        (("--events", ","), "--events ',': expected appeared, changed, vanished, field"),
        (("--webhook", "example.org"), "--webhook example.org: expected an http or https address"),
        (("--webhook", "http://e.example:x/"), "--webhook http://e.example:x/: expected an http or https address"),
        (("--every", "0"), "--every 0: expected more than 0 seconds"),
        (
            ("--every", "nan"),
            "--every nan: expected a number of seconds, or a time with its unit, such as 500ms, 90s or 1h30m",
        ),
        (("--every", "1e300"), "--every 1e300: expected at most 31536000 seconds"),
    ],
)
def test_a_mistake_of_watch_is_one_line(words: tuple[str, ...], mistake: str) -> None:
    status, _, err = commands.run("watch", "http://e.example/", *words)
    assert (status, err) == (2, f"gossamer: {mistake}\n")


class Restless(Answering):
    """A page that is another one each time."""

    def get(self) -> None:
        self.answer(200, f"<!doctype html><title>Restless</title>{time.time()}".encode())


@pytest.mark.heavy
def test_a_watch_that_is_refused_reports_nothing_of_the_crawl_that_runs(tmp_path: Path) -> None:
    directory = tmp_path / "watch"
    quick = ("revisit.interval_s_mean=0.5", "revisit.interval_s_min=0.2", "revisit.change=payload", "robots.obey=false")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Restless)
    with serving(server):
        words = ["watch", f"http://127.0.0.1:{server.server_address[1]}/", "-o", str(directory), *QUICK]
        words += ["--events", "appeared,changed", *(word for one in quick for word in ("--set", one))]
        environment = {**os.environ, "PYTHONPATH": str(Path(gossamer.__file__).parents[1])}
        with subprocess.Popen([sys.executable, "-m", "gossamer", *words], env=environment) as running:
            try:
                until((directory / "state/control.sock").exists)
                status, out, _ = commands.run(*words)
            finally:
                running.send_signal(signal.SIGINT)
    assert (status, out) == (2, "")


def test_a_crawl_without_pages_has_no_changes(tmp_path: Path) -> None:
    done = run(tmp_path, "crawl", "http://127.0.0.1:9/", "--max-time", "0.1", *QUICK)
    assert done.returncode in (0, 3), done.stderr
    assert commands.run("changes", str(tmp_path / "crawl"))[:2] == (0, "")
    assert faults_of(tmp_path / "crawl") == []
