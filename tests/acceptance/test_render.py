"""`--render always` with Debian's Chromium: what scripts add is found, and nothing is requested past the gates."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import quote
from urllib.request import urlopen

import pyarrow.parquet as pq
import pytest
from fastwarc.warc import ArchiveIterator

from tests.acceptance.conftest import Crawl
from tests.acceptance.noting import Site
from tests.acceptance.test_dashboard import Served

pytestmark = [pytest.mark.acceptance, pytest.mark.paced, pytest.mark.timeout(600)]
OPTIONS = ("--allow-private", "--quiet")
ROUTES = ("/", "/a", "/b", "/c")
APP = """
const routes = {"/": ["/a", "/b"], "/a": ["/c"], "/b": [], "/c": []};
async function show() {
  const data = await (await fetch("/api/text.json")).json();
  document.title = "Page " + location.pathname;
  const app = document.querySelector("#app");
  app.innerHTML = `<h1>${location.pathname}</h1><p>${data.text}</p>`;
  for (const to of routes[location.pathname] || []) {
    const link = app.appendChild(document.createElement("a"));
    link.href = to; link.textContent = to;
  }
  setTimeout(() => app.insertAdjacentHTML("beforeend", "<a href='/late" + location.pathname + "'>late</a>"), 3000);
}
show();
"""
SHELL = (
    "<!doctype html><title>…</title><div id=app></div><script src=/app.js></script><link rel=stylesheet href=/s.css>"
)


def rows(crawl: Path) -> dict[str, dict[str, Any]]:
    """Return the rows of `pages` by path."""
    found = [row for file in sorted((crawl / "pages").glob("*.parquet")) for row in pq.read_table(file).to_pylist()]
    return {"/" + row["url"].split("/", 3)[3]: row for row in found}


def records(crawl: Path) -> list[tuple[str, dict[str, str], bytes]]:
    """Return type, fields and block of each WARC record."""
    found = []
    for path in sorted((crawl / "warc").glob("*.warc.gz")):
        with path.open("rb") as file:
            for record in ArchiveIterator(file, parse_http=False):
                fields = dict(record.headers.items())
                found.append((fields["WARC-Type"], fields, record.reader.read()))
    return found


def status(command: Crawl, crawl: Path) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(command("status", crawl, "--json").stdout)
    return told


def browsers(sessions: set[int] | None = None) -> list[str]:
    """Return the commands of all processes that belong to a browser of this test, and of its guard: those that name
    its folder, and those of a session that one of these is or was in (`sessions`), since a renderer may not name it.
    """
    processes: list[tuple[int, str]] = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            with suppress(OSError):
                command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                session = (process / "stat").read_text().rpartition(")")[2].split()[3]
                processes.append((int(session), command))
    folders = f"{os.environ['TMPDIR']}/gossamer-browser-"
    sessions = set() if sessions is None else sessions
    sessions |= {session for session, command in processes if folders in command}
    return [command[:400] for session, command in processes if session in sessions]


@pytest.mark.promise("What is fetched", "With `--render always` links are followed that only scripts make.")
@pytest.mark.long
@pytest.mark.parametrize("program", ["", "chromium"])
def test_links_that_only_scripts_make_are_followed(
    command: Crawl, tmp_path: Path, site: Callable[..., Site], program: str
) -> None:
    text = json.dumps({"text": "Brought by a script."})
    long = f"<!-- {'x' * (1 << 20)} -->"  # Such a page is on disk.
    app = site({**dict.fromkeys(ROUTES, SHELL), "/c": SHELL + long, "/app.js": APP, "/api/text.json": text})
    options = (*OPTIONS, "--politeness", "own", "--set", "process.text=true", "--set", f"render.program='{program}'")
    done = command("crawl", f"{app.url}/", "-o", tmp_path / "c", "--render", "always", *options)
    assert done.returncode == 0, done.stderr
    found = rows(tmp_path / "c")
    fetched = {path for path, row in found.items() if row["outcome"] == "fetched"}
    assert fetched == {"/", "/a", "/b", "/c"}
    assert {path for path, row in found.items() if row["outcome"] == "http_error"} == {f"/late{p}" for p in fetched}
    assert [found[path]["title"] for path in ("/", "/c")] == ["Page /", "Page /c"]
    assert {found[path]["rendered"] for path in fetched} == {"rendered"}
    assert found["/"]["links_gained"] == 3
    # What one page has needed is not requested for the next; what is not needed is not requested at all.
    assert sorted(app.paths) == sorted(["/robots.txt", "/app.js", "/api/text.json", *found])
    assert {headers["user-agent"] for *_, headers in app.log} == {app.log[0][3]["user-agent"]}
    told = status(command, tmp_path / "c")
    assert told["rendered"] == {"rendered": 4}
    assert told["rendering"]["links_gained"] == 3 + 2 + 1 + 1
    assert told["rendering"]["resources_requested"] == 2
    assert told["rendering"]["resources_reused"] == 2 * 3
    assert told["rendering"]["cpu_s"] > 0
    assert browsers() == []
    report = json.loads(command("report", tmp_path / "c", "--json").stdout)
    assert [(one["name"], one["count"]) for one in report["rendered"]] == [("rendered", 4)]

    plain = command("crawl", f"{app.url}/", "-o", tmp_path / "n", *options)
    assert plain.returncode == 0, plain.stderr
    assert set(rows(tmp_path / "n")) == {"/"}


@pytest.mark.promise(
    "Files and exports", "Markdown, mirrors, search and replay have a rendered page as its scripts made it."
)
@pytest.mark.long
def test_rendered_pages_are_archived_with_what_they_needed(
    command: Crawl, tmp_path: Path, site: Callable[..., Site]
) -> None:
    app = site({"/": SHELL, "/app.js": APP, "/api/text.json": json.dumps({"text": "Brought by a script."})})
    done = command("crawl", f"{app.url}/", "-o", tmp_path / "c", "--max-pages", "1", "--render", "always", *OPTIONS)
    assert done.returncode == 0, done.stderr
    found = records(tmp_path / "c")
    [(_, conversion, html)] = [one for one in found if one[0] == "conversion"]
    assert b"<p>Brought by a script.</p>" in html
    assert b'<a href="/late/">late</a>' in html
    responses = {
        fields["WARC-Target-URI"].removeprefix(app.url): fields for kind, fields, _ in found if kind == "response"
    }
    assert conversion["WARC-Refers-To"] == responses["/"]["WARC-Record-ID"]
    assert conversion["WARC-Target-URI"] == f"{app.url}/"
    types = {"/": "document", "/app.js": "script", "/api/text.json": "xhr"}
    assert {path: responses[path]["WARC-Resource-Type"] for path in types} == types
    assert {responses[path]["WARC-Page-ID"] for path in types} == {conversion["WARC-Page-ID"]}
    # What is made of the crawl afterwards is made of the rendered page too.
    for to in ("markdown", "mirror"):
        assert command("export", tmp_path / "c", "--to", to, "-o", tmp_path / to).returncode == 0
        [file] = [*(tmp_path / to).glob("*/*.md"), *(tmp_path / to).glob("*/*.html")]
        assert "Brought by a script." in file.read_text()
    assert command("search", tmp_path / "c", "--build").returncode == 0
    assert f"{app.url}/" in command("search", tmp_path / "c", "brought by a script").stdout
    with Served("serve", tmp_path / "c", "--port", "0") as served:
        versions = json.load(urlopen(f"{served.base}api/versions?url={quote(f'{app.url}/')}"))
        shown = urlopen(f"http://127.0.0.1:{versions['replay_port']}/{versions['versions'][0]['replay']}").read()
    assert b"Brought by a script." in shown
    assert "WARC-Page-ID" not in responses["/robots.txt"]
    verified = command("verify", tmp_path / "c", "--deep")
    assert verified.returncode == 0, verified.stdout


@pytest.mark.promise(
    "What is fetched",
    "With `--render always` each request of a browser passes the gates that pages pass: the browser has no network.",
)
@pytest.mark.long
def test_every_request_of_a_browser_passes_the_gates(command: Crawl, tmp_path: Path, site: Callable[..., Site]) -> None:
    code = "document.body.insertAdjacentHTML('beforeend', `<a href=/from-${document.currentScript.dataset.n}>x</a>`);"
    far = site({"/ok.js": code, "/denied.js": code}, robots="User-agent: *\nDisallow: /denied\n", address="127.0.0.2")
    page = (
        "<body><script>navigator.serviceWorker.register('/worker.js').catch(() => {});</script>"
        f"<script data-n=ok src={far.url}/ok.js></script><script data-n=denied src={far.url}/denied.js></script>"
        "<script data-n=near src=/near.js></script><script data-n=excluded src=http://127.0.0.3:9/x.js></script>"
        "<script data-n=pattern src=/tracker/x.js></script>"
        "<link rel=preconnect href=http://127.0.0.4:9><link rel=dns-prefetch href=//example.com>"
        "<script>fetch('/post', {method: 'POST', body: 'x'}).catch(() => {}); navigator.sendBeacon('/beacon', 'x');"
        "new WebSocket('ws://' + location.host + '/socket'); new EventSource('/events');"
        "new RTCPeerConnection({iceServers: [{urls: 'stun:127.0.0.1'}]}).createDataChannel('x');</script>"
    )
    near = site({"/": page, "/near.js": code, "/from-ok": "<p>ok", "/from-near": "<p>near"})
    (tmp_path / "excluded").write_text("127.0.0.3\n")
    done = command(
        "crawl", f"{near.url}/", "-o", tmp_path / "c", "--render", "always", "--delay", "2",
        "--set", f"scope.exclude_hosts_file={tmp_path / 'excluded'}", "--exclude", "/tracker/", *OPTIONS,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert near.paths[:3] == ["/robots.txt", "/", "/near.js"]
    assert sorted(near.paths[3:]) == ["/from-near", "/from-ok"]
    assert far.paths == ["/robots.txt", "/ok.js"]
    for server in (near, far):
        assert {method for _, method, _, _ in server.log} == {"GET"}
        assert all(headers["user-agent"].startswith("gossamer/") for *_, headers in server.log)
        instants = [at for at, *_ in server.log]
        assert min(b - a for a, b in pairwise(instants)) >= 1.9
    refused = status(command, tmp_path / "c")["rendering"]
    assert refused["refused_robots_denied"] == 1
    assert refused["refused_excluded"] == 2
    assert refused["refused_method"] >= 2


HOSTILE = {
    "/loop": "<script>for (;;) {}</script>",
    "/microtasks": "<script>(function again() { Promise.resolve().then(again); })()</script>",
    "/timers": "<script>(function again() { setTimeout(again, 0); })()</script>",
    "/memory": "<script>const kept = []; for (;;) kept.push(new Array(1e5).fill(Math.random()));</script>",
    "/elements": "<body><script>for (let i = 0; i < 1e6; i++) document.body.append(document.createElement('p'), 'x');"
    "</script>",
    "/requests": "<script>for (let i = 0; i < 5e3; i++) fetch('/none?' + i).catch(() => {});</script>",
    "/windows": "<script>for (let i = 0; i < 50; i++) window.open('/opened'); alert(1); confirm(2);</script>"
    "<a href=/x>x</a>",
    "/elsewhere": "<script>location = 'http://10.0.0.1/secret'</script><a href=/x>x</a>",
    "/permissions": "<script>navigator.geolocation.getCurrentPosition(() => {}); Notification.requestPermission();"
    "navigator.mediaDevices && navigator.mediaDevices.getUserMedia({audio: true});</script><a href=/x>x</a>",
    "/download": "<script>const a = document.createElement('a'); a.href = 'data:application/zip,x';"
    "a.download = 'x.zip'; a.click();</script><a href=/x>x</a>",
    "/blank": "<script>location = 'about:blank'</script><a href=/x>x</a>",
    # These wait for what behaviors do.
    "/grows": "<body><script>addEventListener('scroll', () => { for (let i = 0; i < 5e3; i++)"
    " document.body.insertAdjacentHTML('beforeend', '<p>' + 'x'.repeat(50)); })</script>",
    "/clicked": "<body><button onclick='for (;;);'>Load more</button>",
    "/leaves": "<body><button onclick='location = `about:blank`'>Load more</button><a href=/x>x</a>",
    "/details": "<body><details ontoggle='const kept = []; for (;;) kept.push(new Array(1e5).fill(Math.random()))'>",
    "/routes": "<body><script>const show = () => { const n = Math.random(); document.body.insertAdjacentHTML("
    "'beforeend', `<a href=#/${n}>x</a>`); }; show(); addEventListener('hashchange', show)</script>",
}
COMES_TO = {
    "/loop": {"hangs"}, "/microtasks": {"hangs"}, "/timers": {"rendered"}, "/memory": {"memory", "crashed"},
    "/elements": {"too_large", "hangs", "memory", "partial"}, "/requests": {"partial", "too_many_requests", "memory"},
    "/windows": {"rendered"},
    "/elsewhere": {"rendered"}, "/permissions": {"rendered"}, "/download": {"rendered"},
    "/blank": {"not_loaded"}, "/grows": {"rendered", "partial"}, "/clicked": {"hangs"}, "/leaves": {"not_loaded"},
    "/details": {"memory", "crashed"}, "/routes": {"partial"},
}  # fmt: skip


@pytest.mark.long
def test_hostile_pages_end_bounded_and_others_go_on(command: Crawl, tmp_path: Path, site: Callable[..., Site]) -> None:
    index = "".join(f"<a href={path}>x</a>" for path in HOSTILE)
    kind = "<script>document.body.insertAdjacentHTML('beforeend', '<a href=/made>x</a>')</script>"
    app = site({"/": f"<body>{index}{kind}", "/made": "<p>made", "/x": "<p>x", "/opened": "<p>opened", **HOSTILE})
    done = command(
        "crawl", f"{app.url}/", "-o", tmp_path / "c", "--render", "always", "--politeness", "own",
        "--set", "render.stall_s_max=4", "--set", "render.attempts_max=1", "--set", "render.memory_bytes_max=536870912",
        "--set", "render.dom_bytes_max=1048576", *OPTIONS,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = rows(tmp_path / "c")
    failed = {path: row["error"] for path, row in found.items() if row["outcome"] != "fetched" and path != "/secret"}
    assert failed == {}
    came_to = {path: found[path]["rendered"] for path in HOSTILE}
    assert {path: result for path, result in came_to.items() if result not in COMES_TO[path]} == {}
    assert found.keys() >= {*HOSTILE, "/made", "/x", "/opened"}
    assert {found[path]["rendered"] for path in ("/", "/made", "/x", "/opened")} == {"rendered"}
    assert found["/loop"]["error"].startswith("not rendered: it kept its browser busy")
    assert [row["outcome"] for path, row in found.items() if path == "/secret"] in ([], ["dns_error"])
    assert browsers() == []
    assert list(Path(os.environ["TMPDIR"]).glob("gossamer-browser-*")) == []


def kill_once(is_time: Callable[[], bool], *arguments: str | Path) -> None:
    """Run a command, and kill all of its processes but browsers when it is time."""
    crawl = subprocess.Popen(
        [sys.executable, "-m", "gossamer", *map(str, arguments)],
        start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        deadline = time.monotonic() + 120
        while not is_time():
            assert time.monotonic() < deadline, "it was not time"
            time.sleep(0.05)
    finally:
        os.killpg(crawl.pid, signal.SIGKILL)
        crawl.wait()


@pytest.mark.promise("Crash safety", "A page during whose rendering a crawl is killed is neither lost nor kept twice.")
@pytest.mark.long
def test_two_kills_while_a_page_is_rendered_lose_and_double_none(
    command: Crawl, tmp_path: Path, site: Callable[..., Site]
) -> None:
    made = "<body><script>document.body.insertAdjacentHTML('beforeend', '<a href=/made-%s>x</a>')</script>"
    pages = {f"/{name}": made % name for name in "abc"}
    index = "".join(f"<a href={path}>x</a>" for path in ("/a", "/b", "/busy", "/c"))
    app = site({"/": f"<body>{index}", "/busy": "<script src=/busy.js></script>", "/busy.js": "for (;;);", **pages})
    app.pages.update({f"/made-{name}": f"<p>made {name}" for name in ("a", "b", "c", "busy")})
    crawl = tmp_path / "c"
    options = (*OPTIONS, "--politeness", "own", "--set", "render.stall_s_max=300")
    start = ("crawl", f"{app.url}/", "-o", crawl, "--render", "always", *options)
    for kills, arguments in enumerate((start, ("resume", crawl, "--quiet"))):
        kill_once(lambda kills=kills: app.paths.count("/busy.js") > kills, *arguments)  # type: ignore[misc]
    app.pages["/busy.js"] = "document.write('<a href=/made-busy>x</a>')"
    done = command("resume", crawl, "--quiet")
    assert done.returncode == 0, done.stderr
    found = [row for file in (crawl / "pages").glob("*.parquet") for row in pq.read_table(file).to_pylist()]
    paths = sorted(app.pages.keys() - {"/busy.js"})
    assert sorted(row["url"].removeprefix(app.url) for row in found) == paths
    assert {(row["outcome"], row["rendered"]) for row in found} == {("fetched", "rendered")}
    kept = [(kind, fields.get("WARC-Target-URI", "").removeprefix(app.url)) for kind, fields, _ in records(crawl)]
    assert sorted(path for kind, path in kept if kind == "conversion") == paths
    assert (
        sorted(path for kind, path in kept if kind == "response" and path not in ("/robots.txt", "/busy.js")) == paths
    )
    verified = command("verify", crawl, "--deep")
    assert verified.returncode == 0, verified.stdout


@pytest.mark.promise("Crash safety", "A crawler that is killed leaves no browser.")
def test_a_killed_crawler_leaves_no_browser(tmp_path: Path, site: Callable[..., Site]) -> None:
    app = site({"/": "<script>for (;;) {}</script>"})
    sessions: set[int] = set()

    def has_begun() -> bool:
        return any("--type=renderer" in command for command in browsers(sessions))

    kill_once(has_begun, "crawl", f"{app.url}/", "-o", tmp_path / "c", "--render", "always", *OPTIONS)
    deadline = time.monotonic() + 60
    while browsers(sessions) or list(Path(os.environ["TMPDIR"]).glob("gossamer-browser-*")):
        assert time.monotonic() < deadline, browsers(sessions)
        time.sleep(0.05)
