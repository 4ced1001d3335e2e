"""What the console shows of archives: versions of a page and their replay, items, a host over time, a comparison."""

from __future__ import annotations

import csv
import http.server
import json
import os
import re
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from gossamer.config import configure
from gossamer.model.errors import ConfigError
from gossamer.results.isolated.reads import ReplayPlace, seal, unseal
from tests.answering import Answering
from tests.console.conftest import QUICK, Answer, Caller, Commands
from tests.console.test_hostile import descendants

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360f8cfc0000003010100c9fe92"
    "ef0000000049454e44ae426082"
)
HOME = """<!doctype html><title>Shop %d</title><link rel=stylesheet href=/style.css><h1>Shop</h1><img src=/dot.png>
<img src=/absent.png><a href=/kept>kept</a><a href=/changes>changes</a><a href=/moved>moved</a>
<a href=/goes>goes</a><a href=/comes>comes</a><a href=/list.pdf>list</a><a href=https://elsewhere.example/>elsewhere</a>
<script src=/code.js></script><script>parent.owned = 1</script>"""
RULES = '[scope]\nembeds = true\n[extract.product.fields]\nname = { css = "h1", required = true }\n'
AGAIN = (
    "--mode", "continuous", "--set", "revisit.interval_s_mean=0.5", "--set", "revisit.interval_s_min=0.2",
    "--set", "revisit.interval_s_max=1.0",
)  # fmt: skip


class _Shop(Answering):
    """A site of which the second edition lacks a page, has another, and has one with another text."""

    edition = 1
    visits = 0

    def get(self) -> None:
        if self.path == "/":
            return self.answer(200, (HOME % self.edition).encode(), ("Set-Cookie", "known=1"))
        if self.path == "/style.css":
            return self.answer(200, b"h1 { color: rgb(1, 2, 3) } p { background: url(dot.png) }", media_type="text/css")
        if self.path == "/dot.png":
            return self.answer(200, PNG, media_type="image/png")
        if self.path == "/list.pdf":
            return self.answer(200, b"%PDF-1.4 no more", media_type="application/pdf")
        if self.path == "/moved":
            return self.answer(302, b"", ("Location", "/kept"))
        pages = {
            "/kept": "<title>Kept</title><h1>Kept</h1>",
            "/changes": f"<title>Changes</title><h1>Edition {self.edition}</h1>",
            ("/goes", "/comes")[self.edition - 1]: "<title>One edition</title><h1>Here</h1>",
        }
        if self.path == "/counted":
            type(self).visits += 1
            return self.answer(200, f"<title>Counted</title><p>{self.visits // 2}".encode())
        page = pages.get(self.path)
        return self.answer(404 if page is None else 200, (page or "").encode())


@pytest.fixture(scope="module")
def shop() -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Shop)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def serving(commands: Commands, shop: str) -> Iterator[tuple[Caller, int]]:
    """A server of three crawls that are over, and its process: two editions of a site, and one page again and again."""
    (commands.directory / "rules.toml").write_text(RULES)
    common = ("--allow-private", "--politeness", "own", "--quiet", *QUICK)
    for number, name in ((1, "one"), (2, "two")):
        _Shop.edition = number
        status, _, err = commands("crawl", shop, "-c", "rules.toml", "-o", f"many/{name}", *common)
        assert (status, err) == (0, "")
    _Shop.visits = 0  # The module's tests may be divided, and then it is set up twice in one process.
    status, _, err = commands("crawl", f"{shop}counted", "-o", "many/again", "--max-pages", "6", *AGAIN, *common)
    assert (status, err) == (0, "")
    caller, process = commands.served("serve", "--folder", "many", "--port", "0")
    yield caller, process.pid
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0


@pytest.fixture
def call(serving: tuple[Caller, int]) -> Caller:
    return serving[0]


def versions(call: Caller, crawl: str, url: str) -> dict[str, object]:
    found: dict[str, object] = call.get(f"/crawls/{crawl}/api/versions?url={quote(url)}").json
    return found


def replay(call: Caller, crawl: str, url: str, path: str = "") -> Answer:
    """Return the last version of a page as its own port shows it, or what else is there at `path`."""
    found = versions(call, crawl, url)
    assert found["replay_port"] not in (0, call.port)
    [last, *_] = found["versions"]
    return Caller(found["replay_port"], "").get("/" + (path or last["replay"]))


# ---- versions and their replay


@pytest.mark.heavy
def test_a_page_is_listed_with_its_versions_and_which_of_them_changed(call: Caller, shop: str) -> None:
    found = versions(call, "again", f"{shop}counted")
    assert found["total"] == len(found["versions"]) == 6
    assert [one["at"] for one in found["versions"]] == sorted((one["at"] for one in found["versions"]), reverse=True)
    oldest_first = found["versions"][::-1]
    assert [one["content"] for one in oldest_first] == ["first", "changed", "same", "changed", "same", "changed"]
    assert oldest_first[1]["digest"] == oldest_first[2]["digest"] != oldest_first[0]["digest"]
    assert {one["outcome"] for one in oldest_first} == {"fetched"}
    assert versions(call, "one", f"{shop}nowhere")["versions"] == []
    assert "not an address" in call.get("/crawls/one/api/versions?url=http%3A%2F%2F%5B").error
    assert call.get("/crawls/none/api/versions?url=http%3A%2F%2Fa%2F").status == 404


def test_each_version_is_replayed_as_it_was_then(call: Caller, shop: str) -> None:
    found = versions(call, "again", f"{shop}counted")
    shown = [Caller(found["replay_port"], "").get(f"/{one['replay']}").body for one in found["versions"]]
    numbers = [int(re.search(rb"<p>(\d+)", body)[1]) for body in shown]
    assert numbers == [3, 2, 2, 1, 1, 0], "a visit that found the same shows what it found"


@pytest.mark.heavy
@pytest.mark.promise(
    "Console", "An archived page is shown from another origin than the console's, without scripts and without network."
)
def test_a_replayed_page_can_run_nothing_and_reach_no_server(call: Caller, shop: str) -> None:
    page = replay(call, "one", shop)
    assert page.status == 200
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    policy = [part.strip() for part in page.headers["content-security-policy"].split(";")]
    assert "sandbox" in policy, "no allowance at all"
    assert "default-src 'none'" in policy
    assert not [part for part in policy if part.startswith(("script-src", "connect-src", "sandbox "))]
    sources = {part.partition(" ")[0]: part.split()[1:] for part in policy if "-src" in part}
    assert set().union(*sources.values()) == {"'none'", "'self'", "data:", "'unsafe-inline'"}
    assert sources["style-src"] == ["'self'", "'unsafe-inline'"]
    assert "form-action 'none'" in policy
    assert f"frame-ancestors http://127.0.0.1:{call.port}" in policy
    assert page.headers["x-content-type-options"] == "nosniff"
    assert page.headers["referrer-policy"] == "no-referrer"
    assert "set-cookie" not in page.headers, "of what the server sent, only the content is passed on"
    assert call.token not in page.body.decode()
    assert re.findall(rb"""(?:src|href)="(?:https?:)?//[^"]*""", page.body) == []
    [absent] = re.findall(rb'<img src="(missing[^"]*)"', page.body)
    told = replay(call, "one", shop, absent.decode())
    assert (told.status, f"<p>{shop}absent.png</main>" in told.body.decode()) == (404, True)
    assert b"<p>&lt;b&gt;</main>" in replay(call, "one", shop, "missing?%3Cb%3E").body


def test_what_a_page_shows_and_where_it_leads_is_that_of_the_archive(call: Caller, shop: str) -> None:
    page = replay(call, "one", shop).body.decode()
    [sheet] = re.findall(r'rel="stylesheet" href="([^"]+)"', page)
    answer = replay(call, "one", shop, sheet)
    assert (answer.headers["content-type"], answer.body[:4]) == ("text/css", b"h1 {")
    [image] = re.findall(r'url\("?([\w-]+)"?\)', answer.body.decode())
    assert image in page, "the sheet and the page lead to the same image"
    assert replay(call, "one", shop, image).body == PNG
    links = {text: href for href, text in re.findall(r'<a href="([^"]+)">(\w+)', page)}
    assert b"<h1>Kept" in replay(call, "one", shop, links["kept"]).body
    assert links["moved"] == links["kept"], "redirects are followed"
    assert (links["elsewhere"], links["comes"]) == (
        "missing?https%3A//elsewhere.example/",
        f"missing?{quote(shop)}comes",
    )
    told = replay(call, "one", shop, links["list"])
    assert (told.status, told.headers["content-type"]) == (409, "text/html; charset=utf-8")
    assert b"application/pdf, 16 bytes: not shown here" in told.body
    assert "sandbox" in told.headers["content-security-policy"]
    assert re.findall(r'"([^"]*code\.js)"', page) == [f"missing?{quote(shop)}code.js"]
    [script] = re.findall(r'<script src="([^"]+)"', page)
    assert replay(call, "one", shop, script).status != 200, "scripts are not even passed on"


def test_only_the_console_gives_out_paths_that_lead_somewhere(call: Caller, shop: str) -> None:
    found = versions(call, "one", shop)
    path = found["versions"][0]["replay"]
    forged = seal(b"x" * 32, ReplayPlace("one", shop, 0, "text/html", ("../../console.token", 0, 10)))
    middle = len(path) // 2
    turned = path[:middle] + ("A" if path[middle] != "A" else "B") + path[middle + 1 :]
    for other in (forged, turned, path[:-4], path + "AAAA", "A", "%00", "é", "api/status", "A" * 10_000):
        answer = replay(call, "one", shop, quote(other))
        assert answer.status == 404, other
        assert b"fetched" not in answer.body
    assert Caller(found["replay_port"], "")("GET", f"/{path}", headers={"Host": "a b;c"}).status == 400
    assert Caller(found["replay_port"], "")("POST", f"/{path}").status == 405
    frames = call.get("/crawls/one/").headers["content-security-policy"]
    assert frames.startswith("default-src 'self';")
    assert f"frame-src http://127.0.0.1:{found['replay_port']}" in frames
    assert "frame-src" not in call.get("/").headers["content-security-policy"]


@pytest.mark.heavy
@pytest.mark.promise("Console", "Through a proxy, archived pages have another host name than the dashboard's.")
@pytest.mark.parametrize("url", ["https://replay.example/many", ""])
def test_through_a_proxy_archived_pages_have_a_name_of_their_own(
    commands: Commands, serving: tuple[Caller, int], shop: str, url: str
) -> None:
    proxied = ("--set", "console.public_url=https://crawls.example/a", "--set", f"console.replay_url={url}")
    call, process = commands.served("serve", "many/one", "--port", "0", *proxied)
    through = {"Host": "crawls.example"}
    try:
        policy = call("GET", "/", headers=through).headers["content-security-policy"]
        assert policy.endswith("frame-src https://replay.example" if url else "frame-src 'none'")
        found = call("GET", f"/api/versions?url={quote(shop)}", headers=through, token=call.token).json
        assert (found["public_host"], found["replay_url"]) == ("crawls.example", url)
        shown = Caller(found["replay_port"], "")(
            "GET", f"/{found['versions'][0]['replay']}", headers={"Host": "replay.example"}
        )
        assert shown.status == 200
        policy = shown.headers["content-security-policy"]
        assert policy.startswith("sandbox;")
        assert policy.endswith(" https://crawls.example")
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


@pytest.mark.parametrize(
    ("public", "replay"),
    [
        ("https://a.example", "https://a.example/replay"), ("https://a.example", "https://A.example:8443"),
        ("https://a.example", "http://b.example"), ("", "https://b.example"), ("https://a.example", "b.example"),
    ],
)  # fmt: skip
def test_archived_pages_never_have_the_consoles_own_name(public: str, replay: str) -> None:
    with pytest.raises(ConfigError, match="replay_url"):
        configure(options={}, sets=[f"console.public_url={public}", f"console.replay_url={replay}"])


def test_a_sealed_path_leads_where_it_was_made_to_lead() -> None:
    place = ReplayPlace("one", "http://a/é", 5, "text/html", ("a.warc.gz", 7, 9), ("b.warc.gz", 1, 2))
    assert unseal(b"s" * 32, seal(b"s" * 32, place)) == place
    assert unseal(b"t" * 32, seal(b"s" * 32, place)) is None


# ---- items, hosts, comparisons


def test_items_are_listed_by_kind_in_parts_and_saved_as_files(call: Caller, shop: str) -> None:
    first = call.get("/crawls/one/api/items?n=2").json
    assert first["kinds"] == [{"name": "product", "items": 4}]
    assert (first["kind"], first["columns"], first["total"]) == ("product", ["name"], 4)
    rest = call.get("/crawls/one/api/items?kind=product&n=2&offset=2").json
    listed = [*first["items"], *rest["items"]]
    assert sorted((one["url"].removeprefix(shop), one["values"]) for one in listed) == [
        ("", ["Shop"]), ("changes", ["Edition 1"]), ("goes", ["Here"]), ("kept", ["Kept"])
    ]  # fmt: skip
    assert [one["at"] for one in listed] == sorted((one["at"] for one in listed), reverse=True)
    saved = call.get("/crawls/one/api/items/export?kind=product")
    assert saved.headers["content-disposition"] == 'attachment; filename="product.csv"'
    rows = list(csv.DictReader(saved.body.decode().splitlines()))
    assert sorted(row["name"] for row in rows) == ["Edition 1", "Here", "Kept", "Shop"]
    lines = call.get("/crawls/one/api/items/export?kind=product&format=jsonl").body.splitlines()
    assert sorted(json.loads(line)["name"] for line in lines) == ["Edition 1", "Here", "Kept", "Shop"]


def test_items_that_are_not_there_are_refused_in_one_line(call: Caller) -> None:
    none = call.get("/crawls/again/api/items").json
    assert (none["kinds"], none["kind"], none["items"]) == ([], "", [])
    answer = call.get("/crawls/one/api/items?kind=other")
    assert (answer.status, answer.error) == (404, "one has no items other")
    assert call.get("/crawls/one/api/items?n=1000").status == 422
    answer = call.get("/crawls/one/api/items/export?kind=other")
    assert answer.status == 409
    assert "items/product" in answer.error
    for query in ("", "?kind=..%2Fpages", "?kind=--where", "?kind=product&format=wacz", "?kind=product&output=x"):
        answer = call.get(f"/crawls/one/api/items/export{query}")
        assert (answer.status, bool(answer.error)) == (422, True), query


def test_a_host_is_shown_over_time(call: Caller) -> None:
    found = call.get("/crawls/one/api/history?host=127.0.0.1").json
    assert sum(one["failed"] for one in found["periods"]) == found["outcomes"]["http_error"] >= 1
    assert (
        sum(one["answered"] for one in found["periods"])
        == found["outcomes"]["fetched"] + found["outcomes"]["redirected"]
    )
    assert len({one["at"] for one in found["periods"]}) == len(found["periods"]) <= 48
    assert call.get("/crawls/one/api/history?host=elsewhere.example").json["periods"] == []


@pytest.mark.promise("Console", "Two crawls are compared by their last visits: pages that are new, gone or changed.")
def test_two_crawls_are_compared(call: Caller, shop: str) -> None:
    def compared(change: str, more: str = "") -> dict[str, object]:
        found: dict[str, object] = call.get(f"/api/crawls/two/compare?earlier=one&change={change}{more}").json
        return found

    changed = compared("changed")
    assert (changed["first"], changed["second"]) == ("one", "two")
    assert changed["counts"] == {"new": 1, "gone": 1, "changed": 2, "same": 4}
    assert [one["url"].removeprefix(shop) for one in changed["pages"]] == ["", "changes"]
    [gone], [new] = compared("gone")["pages"], compared("new")["pages"]
    assert (gone["url"], gone["before"], gone["after"], gone["status"]) == (f"{shop}goes", "fetched", "http_error", 404)
    assert (new["url"], new["before"], new["after"]) == (f"{shop}comes", "http_error", "fetched")
    assert changed["outcomes"]["fetched"] == [7, 7]
    assert [one["url"] for one in compared("changed", "&n=1&offset=1")["pages"]] == [f"{shop}changes"]
    nothing = call.get("/api/crawls/again/compare?earlier=one&change=gone&n=100").json
    assert nothing["counts"] == {"new": 1, "gone": 7, "changed": 0, "same": 0}
    assert {one["after"] for one in nothing["pages"]} == {""}


@pytest.mark.heavy
def test_only_crawls_of_the_folder_are_compared(call: Caller) -> None:
    for name in ("none", "..%2Fmany%2Ftwo", "%2Fetc", "."):
        assert call.get(f"/api/crawls/two/compare?earlier={name}").status == 404, name
    assert call.get("/api/crawls/two/compare").status == 422
    assert call.get("/api/crawls/two/compare?earlier=one&change=same").status == 422


def test_a_reader_has_no_network(serving: tuple[Caller, int], shop: str) -> None:
    """By the same call as processes of `tests/world/test_sandbox.py`: here the kernel says that this one made it."""
    call, server = serving
    assert versions(call, "one", shop)["versions"]
    [reader] = [child for child, words in descendants(server).items() if b"gossamer.results.isolated\0read" in words]
    status = Path(f"/proc/{reader}/status").read_text()
    assert "NoNewPrivs:\t1\n" in status
    assert "Seccomp:\t2\n" in status


def test_a_reader_that_dies_ends_its_question_and_no_other(serving: tuple[Caller, int], shop: str) -> None:
    call, server = serving
    assert versions(call, "one", shop)["versions"]
    readers = {child for child, words in descendants(server).items() if b"gossamer.results.isolated\0read" in words}
    assert len(readers) == 1, "one process reads for all"
    for reader in readers:
        os.kill(reader, signal.SIGKILL)
    answers = [call.get(f"/crawls/one/api/versions?url={quote(shop)}").status for _ in range(2)]
    assert answers in ([200, 200], [500, 200])
    assert call.get("/api/crawls").json["crawls"]
