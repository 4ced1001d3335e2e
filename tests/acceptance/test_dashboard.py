"""The dashboard of a real crawl in a real browser: its figures move, and what it tells the crawl is seen by servers."""

from __future__ import annotations

import functools
import json
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from typing import Self
from urllib.parse import quote
from urllib.request import urlopen

import pytest
from playwright.sync_api import Browser, Page, Route, expect, sync_playwright

from gossamer.cli.output import Exit
from tests.acceptance.endless import SCRIPT, WAIT_S_MAX, Endless, until
from tests.answering import free_port, serving
from tests.chromium import launch_chromium
from tests.crash.crawls import environment

pytestmark = [pytest.mark.acceptance, pytest.mark.together, pytest.mark.timeout(300)]

END_S_MAX = 120
REFUSED = ("status of 422",)
"""What the browser says where the server refuses, beside what the page says."""
LATE = ("status of 504",)
"""What it says where an archive is read for too long, which a busy machine may do."""
LOST = (
    "ERR_CONNECTION_", "ERR_CONTENT_LENGTH_MISMATCH", "ERR_EMPTY_RESPONSE", "ERR_INCOMPLETE_CHUNKED_ENCODING",
    "ERR_SOCKET_NOT_CONNECTED",
)  # fmt: skip
"""What it says where no server answers, or no longer: one may be killed in the middle of an answer."""
AXE = Path(__file__).parents[2] / ".axe/package/axe.min.js"
PHONE = {"width": 390, "height": 844}
Opened = Callable[..., Page]


class Served:
    """A command that serves a crawl, and the address that it printed."""

    def __init__(self, *arguments: str | Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-u", "-m", "gossamer", *map(str, arguments)], env=environment(),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        assert self._process.stdout is not None
        self.said: list[str] = []
        for line in self._process.stdout:
            self.said.append(line)
            if found := re.search(r"http://127\.0\.0\.1:\d+/#token=\S+", line):
                self.address = found[0]
                return
        raise AssertionError("".join(self.said))

    @property
    def base(self) -> str:
        return self.address.partition("#")[0]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def wait(self) -> int:
        return self._process.wait(END_S_MAX)

    def kill(self) -> None:
        self._process.kill()

    def end(self) -> None:
        """End it, if it has not ended."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
        self.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


def crawl_of(web: Endless, directory: Path, *hosts: str, port: int = 0, more: tuple[str, ...] = ()) -> Served:
    return Served(
        "crawl", *(web.url(host) for host in hosts), "-o", directory / "crawl", "--hosts", web.names(directory),
        "--allow-private", "--contact", "me@example.org", "--scope", "any", "--politeness", "own", "--per-host", "1",
        "--delay", "0.1", "--serve", str(port), "--set", "crawl.commit_s=0.2", "--set", "crawl.stop_s=2",
        "--set", "scope.traps=false", *more,
    )  # fmt: skip


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = launch_chromium(playwright)
        yield browser
        browser.close()


@pytest.fixture
def opened(browser: Browser) -> Iterator[Opened]:
    """Opens pages; what they complain of, or ask of anybody else, fails the test."""
    contexts, complaints = [], []
    expected: list[str] = []

    def open_page(address: str, *, complains: tuple[str, ...] = (), live: bool = True, **context: object) -> Page:
        expected.extend(complains)
        contexts.append(browser.new_context(**context))
        page = contexts[-1].new_page()
        page.set_default_timeout(1_000 * WAIT_S_MAX)
        page.on("console", lambda message: complaints.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: complaints.append(dialog.message))
        base = address.partition("#")[0]
        page.on("request", lambda asked: complaints.append(asked.url) if not asked.url.startswith(base) else None)
        page.goto(address)
        if live:
            expect(page.locator("#link")).to_have_text(re.compile("^(live|not running)$"))
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert [one for one in complaints if not any(known in one for known in expected)] == []


@pytest.fixture(scope="module")
def web() -> Iterator[Endless]:
    with Endless() as web:
        yield web


@pytest.fixture(scope="module")
def crawl(web: Endless, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    hosts = ("walk.example", "left.example", "slowed.example", "filtered.example", "hostile.example")
    with crawl_of(web, tmp_path_factory.mktemp("served"), *hosts) as served:
        yield served


@pytest.fixture(scope="module")
def archives(web: Endless, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Two crawls of hostile pages that are over, with items, in a folder that is served."""
    folder = tmp_path_factory.mktemp("archives")
    rules = folder / "rules.toml"
    rules.write_text('[extract.page.fields]\nheading = { css = "h2" }\ntext = { css = "p" }\n')
    for name, pages in (("one", 30), ("two", 34)):
        done = subprocess.run(
            [sys.executable, "-m", "gossamer", "crawl", web.url("archived.example"), "-c", str(rules), "--hosts",
             str(web.names(folder)), "-o", str(folder / "many" / name), "--allow-private", "--contact",
             "me@example.org", "--politeness", "own", "--max-pages", str(pages), "--quiet", "--set",
             "scope.traps=false"], env=environment(), timeout=240,
        )  # fmt: skip
        assert done.returncode == 0
    with Served("serve", "--folder", folder / "many", "--port", "0") as served:
        yield served


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A crawl that is over, of a site with dead links, a host without an address and a page that is denied."""
    folder = tmp_path_factory.mktemp("failed")
    port = free_port()
    links = [
        *(f"/gone/{n}" for n in range(4)),
        "/one",
        "/two",
        "/private",
        *(f"http://nowhere.invalid/{n}" for n in range(2)),
    ]
    site = folder / "site"
    site.mkdir()
    (site / "index.html").write_text("".join(f'<a href="{link}">a</a>' for link in links))
    for name in ("one", "two"):
        (site / name).write_text("text")
    (site / "robots.txt").write_text("User-agent: *\nDisallow: /private\n")
    server = subprocess.Popen(
        [sys.executable, "-m", "http.server", str(port), "--bind", "127.0.0.1", "--directory", str(site)],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        until(lambda: connects(port))
        done = subprocess.run(
            [sys.executable, "-m", "gossamer", "crawl", f"http://127.0.0.1:{port}/", "-o", str(folder / "crawl"),
             "--allow-private", "--contact", "me@example.org", "--politeness", "own", "--scope", "any", "--quiet",
             "--delay", "0.2", "--per-host", "1", "--set", "crawl.commit_s=0.1"], env=environment(), timeout=240,
        )  # fmt: skip
        assert done.returncode == 0
    finally:
        server.terminate()
        server.wait()
    with Served("serve", folder / "crawl", "--port", "0") as served:
        yield served


def connects(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


def test_origins_shards_and_hosts_that_wait_are_shown(crawl: Served, opened: Opened) -> None:
    page = opened(crawl.address)
    origin = {"origin": "https://a.example:8443", "state": "waiting", "failures": 2, "first_failed_at": 1.0,
              "next_at": 100.0, "reason": "it never answered: refused", "queued": 3}  # fmt: skip
    given_up = {**origin, "origin": "http://a.example:81", "state": "closed"}
    status = {
        "state": "finished", "ended": "patience", "modules": {"text": {"says": "module text failed on 1 of 2 pages"}},
        "hosts": {"failing": [{"host": "a.example", "limit": "failing", "failures": 2, "reason": "",
                               "origins": [origin, given_up]}]},
        "awaited": [{"host": "b.example", "queued": 5, "at": 90_000.0, "reason": "the server asked for 86400 s"}],
        "shards": [{"shard": 0, "state": "running"}, {"shard": 1, "state": "running", "idle": True}],
        "warnings": ["1 of 2 shards have nothing to fetch"],
    }  # fmt: skip
    shown = page.evaluate(
        """async (status) => {
            (await import("/static/picture.js")).show(status, 40, {});
            return ["failing", "shards", "notices"].map((id) => document.getElementById(id).textContent);
        }""",
        status,
    )
    assert "https://a.example:8443: waiting, next request in 1 min 0 s, 3 URLs queued: it never answered" in shown[0]
    assert "http://a.example:81: given up, next request in 1 min 0 s, 3 URLs queued" in shown[0]
    assert "1running, idle (no URLs)" in shown[1]
    assert "b.example: 5 URLs: the server asked for 86400 s" in shown[2]
    assert "1 of 2 shards have nothing to fetch" in shown[2]


def number(page: Page, card: str) -> float:
    return float(page.locator(f"#card-{card} b").inner_text().replace(",", ""))


def moves(page: Page) -> None:
    """Wait until the figures have moved."""
    before = page.locator("#card-pages b").inner_text()
    expect(page.locator("#card-pages b")).not_to_have_text(before)


def says(page: Page, form: str) -> object:
    return page.locator(f"section:has(#{form}) > .said")


def test_all_of_it_is_shown_and_moves(crawl: Served, web: Endless, opened: Opened) -> None:
    page = opened(crawl.address)
    assert page.url == crawl.base, "the token stays in no address bar"
    expect(page.locator("#state")).to_have_text("running")
    expect(page.locator("h1")).to_have_text("crawl")
    first = number(page, "pages")
    moves(page)
    assert number(page, "pages") > first
    for table in ("levels", "limits", "outcomes", "media", "pages", "active", "slowest", "shards"):
        expect(page.locator(f"#{table} tr").first).not_to_contain_text("so far")
        assert page.locator(f"#{table} tr").count() >= 1, table
    expect(page.locator("#outcomes")).to_contain_text("fetched")
    expect(page.locator("#media")).to_contain_text("text/html")
    expect(page.locator("#active")).to_contain_text("walk.example")
    expect(page.locator("#chart-pages")).to_have_attribute(
        "aria-label", re.compile(r"now [\d.]+ pages/s, at most [\d.]+")
    )
    drawn = page.evaluate(
        """() => [...document.querySelectorAll('.chart canvas')].map((canvas) =>
            canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.some((value) => value > 0))"""
    )
    assert drawn == [True] * 4
    expect(page.locator("#search-section")).to_be_hidden()
    expect(page.locator(".has-items").first).to_be_hidden()  # The crawl extracts none.
    page.get_by_label("All", exact=True).check(force=True)
    expect(page.locator("#chart-bits")).to_have_attribute("aria-label", re.compile("bit/s"))


def test_the_ticks_of_a_slow_crawl_are_named_as_they_are(crawl: Served, opened: Opened) -> None:
    page = opened(crawl.address)
    said = page.evaluate("import('/static/words.js').then(({ short }) => [0, 0.25, 2.5, 150, 2500].map(short))")
    assert said == ["0", "0.25", "2.5", "150", "2.5 k"]


def test_what_is_typed_for_a_number_is_never_a_smaller_one(crawl: Served, opened: Opened) -> None:
    page = opened(crawl.address, complains=REFUSED)
    texts = [
        "7",
        "-1",
        "0.5",
        "1.25",
        "0,5",
        ",5",
        " 7 ",
        "10,000",
        "1.000",
        "1 000",
        "1k",
        "500ms",
        "2.",
        "1e3",
        "0x10",
    ]
    found = page.evaluate("async (texts) => texts.map((await import('/static/words.js')).typed)", texts)
    assert found == [7, -1, 0.5, 1.25, 0.5, 0.5, 7, "10,000", "1.000", "1 000", "1k", "500ms", "2.", "1e3", "0x10"]
    page.fill("#host-name", "slowed.example")
    page.fill("[name=pages]", "10,000")
    page.get_by_role("button", name="Change", exact=True).click()
    expected = 'host.slowed.example.pages is "10,000", expected a whole number'
    expect(says(page, "host")).to_have_text(f"{expected}; write 10000")
    assert page.input_value("[name=pages]") == "10,000"


def test_why_answers(crawl: Served, web: Endless, opened: Opened) -> None:
    page = opened(crawl.address)
    page.locator("#pages button").first.click()
    expect(page.locator("#why-answer .verdict")).to_contain_text("fetched")
    page.fill("#why-url", "http://elsewhere.test/nothing")
    page.press("#why-url", "Enter")
    expect(page.locator("#why-answer .verdict")).to_contain_text("unknown")


@pytest.mark.promise("Console", "A change made in the dashboard takes effect at the servers.")
def test_pausing_ends_requests_until_it_is_resumed(crawl: Served, web: Endless, opened: Opened) -> None:
    page = opened(crawl.address)
    moves(page)  # A browser may drop keys that come while a page is built.
    page.focus("#pause")
    expect(page.locator("#pause")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#said")).to_contain_text("Paused")
    expect(page.locator("#state")).to_have_text("paused")
    expect(page.locator("#unpause")).to_be_focused()
    expect(page.locator("#notices")).to_contain_text("Paused")
    expect(page.locator("#card-rate small")).to_contain_text("0 in flight")
    before = len(web.log)
    lasted = page.locator("#card-elapsed b").inner_text()
    for _ in range(3):
        expect(page.locator("#card-elapsed b")).not_to_have_text(lasted)
        lasted = page.locator("#card-elapsed b").inner_text()
    assert len(web.log) == before
    page.keyboard.press("Enter")
    expect(page.locator("#state")).to_have_text("running")
    expect(page.locator("#pause")).to_be_focused()
    web.more(10)


@pytest.mark.promise("Console", "A change made in the dashboard takes effect at the servers.")
def test_a_host_that_is_excluded_gets_no_more_requests(crawl: Served, web: Endless, opened: Opened) -> None:
    page = opened(crawl.address, complains=REFUSED)
    web.more(2, "left.example")
    page.fill("#exclude-hosts", "left.example")
    page.press("#exclude-hosts", "Enter")
    expect(says(page, "exclude")).to_have_text("left.example: no more requests.")
    assert_no_more(web, "left.example")
    page.fill("#exclude-hosts", "no host at all/")
    page.press("#exclude-hosts", "Enter")
    expect(says(page, "exclude")).to_have_class("said bad")


def assert_no_more(web: Endless, host: str) -> None:
    """Check that a host gets no requests, but for what was in flight, which may reach its server late."""
    web.more(8, "walk.example")
    since = len(web.log)
    web.more(8, "walk.example")
    assert web.asked(host, since) == []


@pytest.mark.long
def test_a_hosts_delay_and_budget_change(crawl: Served, web: Endless, opened: Opened) -> None:
    page = opened(crawl.address, complains=REFUSED)
    page.locator("#active tr", has_text="slowed.example").get_by_role("button").click()
    assert page.input_value("#host-name") == "slowed.example"
    page.fill("[name=delay_s]", "1.2")
    page.fill("[name=pages]", "500")
    page.get_by_role("button", name="Change", exact=True).click()
    expect(says(page, "host")).to_contain_text('"delay_s" = 1.2')
    since = web.more(1, "slowed.example")
    web.more(3, "slowed.example")
    gaps = [after.at - before.at for before, after in pairwise(web.asked("slowed.example", since))]
    assert min(gaps) >= 1.2
    expect(page.locator("#changes")).to_contain_text("host.slowed.example")
    page.fill("[name=delay_s]", "soon")
    page.get_by_role("button", name="Change", exact=True).click()
    expect(says(page, "host")).to_have_class("said bad")
    expect(says(page, "host")).to_contain_text("delay_s")


def test_seeds_are_added(crawl: Served, web: Endless, opened: Opened) -> None:
    page = opened(crawl.address, complains=REFUSED)
    page.fill("#seed-urls", web.url("later.example"))
    page.get_by_role("button", name="Add").click()
    expect(says(page, "seed")).to_have_text("1 new, 0 known, 0 rejected by filters. Known URLs are not fetched again.")
    until(lambda: web.asked("later.example"))
    page.fill("#seed-urls", "mailto:nobody")
    page.get_by_role("button", name="Add").click()
    expect(says(page, "seed")).to_have_class("said bad")


def test_concurrency_and_filters_change(crawl: Served, web: Endless, opened: Opened) -> None:
    page = opened(crawl.address, complains=REFUSED)
    until(lambda: web.at_once_most > 1)
    changed(page, "crawl.concurrency", "1", "crawl.concurrency: 256 → 1")
    web.more(12)  # As many as were in flight, which may reach the server late, and more.
    web.at_once_most = 0
    web.more(10)
    assert web.at_once_most == 1
    expect(page.locator("#card-rate small")).to_contain_text("1 at most")
    changed(page, "crawl.concurrency", "256", "crawl.concurrency: 1 → 256")
    web.more(2, "filtered.example")
    changed(page, "scope.exclude", '["filtered[.]example.*/p"]', "scope.exclude")
    assert_no_more(web, "filtered.example")
    changed(page, "crawl.concurrency", "many", "whole number", kind="bad")


def changed(page: Page, key: str, value: str, told: str, kind: str = "good") -> None:
    page.select_option("#set-key", key)
    page.fill("#set-value", value)
    page.press("#set-value", "Enter")
    expect(says(page, "set")).to_contain_text(told)
    expect(says(page, "set")).to_have_class(f"said {kind}")


WRONG = {
    "crawl.concurrency": {
        "12.5": "expected a whole number or auto", "-1": "expected 1 or more or auto", "\u22125": "write -5",
        "  ": "expected a whole number or auto", "crawl.concurrency = 12": "expected a whole number or auto",
    },
    "limits.max_pages": {"unlimited": "write none for no limit", "10,000": "expected a whole number"},
    "politeness.delay_s_min": {"0,5": "write 0.5", "soon": "a time with its unit, such as 500ms, 90s or 1h30m"},
    "scope.exclude": {
        "foo": 'write ["foo"]', '["foo\\d"]': "write scope.exclude = ['foo\\d']",
        "[\u201cfoo\u201d]": 'write scope.exclude = ["foo"]', '["a("]': "is not a regular expression",
    },
}  # fmt: skip
"""Values of settings, and what the answer says."""


def test_a_setting_is_taken_as_written_or_the_answer_says_how(crawl: Served, opened: Opened) -> None:
    page = opened(crawl.address, complains=REFUSED)
    page.wait_for_selector("#set-key option", state="attached")
    for key, values in WRONG.items():
        for value, said in values.items():
            changed(page, key, value, said, kind="bad")
            assert page.input_value("#set-value") == value, "what was typed stays"
            assert len(page.locator("section:has(#set) > .said").inner_text().splitlines()) == 1
    changed(page, "limits.max_time_s", "1h", "limits.max_time_s: none → 3600.0")
    changed(page, "limits.max_time_s", "none", "limits.max_time_s: 3600.0 → none")
    changed(page, "politeness.delay_s_min", " 150ms ", "politeness.delay_s_min: 0.1 → 0.15")
    changed(page, "politeness.delay_s_min", "0.1", "politeness.delay_s_min: 0.15 → 0.1")
    page.fill("#set-value", "")
    page.press("#set-value", "Enter")
    assert page.evaluate("document.querySelector('#set-value').validity.valueMissing")
    token = crawl.address.rpartition("=")[2]
    for assignment, said in (
        ("state.cache_bytes=9999999", "cannot change while the crawl runs"),
        ("scope.scop=any", "did you mean scope.scope?"),
    ):
        answer = page.request.post(
            f"{crawl.base}api/set", data={"assignments": [assignment]}, headers={"Authorization": f"Bearer {token}"}
        )
        assert answer.status == 422
        assert said in answer.json()["error"]


def test_two_tabs_see_what_the_other_one_set(crawl: Served, opened: Opened) -> None:
    one, two = (opened(crawl.address) for _ in range(2))
    for page in (one, two):
        page.wait_for_selector("#set-key option", state="attached")
    two.select_option("#set-key", "crawl.patience_s")
    before = two.input_value("#set-value")
    changed(one, "crawl.patience_s", "77", f"crawl.patience_s: {before} → 77")
    until(lambda: float(two.input_value("#set-value")) == 77)  # It shows the new value, unless the operator types.
    two.fill("#set-value", "78")
    changed(one, "crawl.patience_s", "79", "→ 79")
    expect(two.locator("#changes")).to_contain_text("→ 79")
    assert two.input_value("#set-value") == "78"
    two.press("#set-value", "Enter")
    expect(says(two, "set")).to_contain_text(re.compile(r"crawl.patience_s: 79(\.0)? → 78"))
    changed(one, "scope.exclude", '["' + 8_000 * "y" + '"]', "→ [")
    expect(one.locator("#changes")).to_contain_text("yyy…")
    assert len(one.locator("#changes").inner_text()) < 2_000
    changed(one, "scope.exclude", "[]", "→ []")
    changed(one, "crawl.patience_s", before, f"→ {before}")
    one.click("#pause")
    expect(two.locator("#state")).to_have_text("paused")
    two.click("#unpause")
    expect(one.locator("#state")).to_have_text("running")
    expect(one.locator("#pause")).to_be_visible()


def test_addresses_of_parts_work_with_back_and_reload(crawl: Served, opened: Opened) -> None:
    page = opened(crawl.address, complains=LATE)
    moves(page)
    for part in ("charts", "lately", "hosts", "ask", "steer"):
        page.goto(f"{crawl.base}#{part}")
        expect(page.locator(f"#{part}")).to_be_in_viewport()
    page.goto(f"{crawl.base}#host=walk.example")
    expect(page.locator("#host-answer dl")).to_contain_text("queued")
    page.locator("#host-shown").fill("left.example")
    page.press("#host-shown", "Enter")
    expect(page).to_have_url(f"{crawl.base}#host=left.example")
    expect(page.locator("#host-answer")).to_contain_text("robots DIR left.example")
    page.go_back()
    expect(page.locator("#host-shown")).to_have_value("walk.example")
    page.go_forward()
    expect(page.locator("#host-shown")).to_have_value("left.example")
    page.click("#stop")
    expect(page.locator("#stopping")).to_be_visible()
    page.reload()  # Nothing is sent.
    expect(page.locator("#stopping")).to_be_hidden()
    expect(page.locator("#link")).to_have_text("live")
    expect(page.locator("#pause")).to_be_enabled()


WIDE = """() => {
    const most = document.documentElement.clientWidth, all = [...document.querySelectorAll("body *")];
    const beyond = (one) => one.getClientRects().length && one.getBoundingClientRect().right > most + 1;
    const wide = all.filter((one) => beyond(one) && !one.closest(".scroll, .skip, svg")).map((one) => one.outerHTML);
    return [document.documentElement.scrollWidth - most, wide.slice(0, 3)];
}"""
"""By how much a page is wider than its window, and the elements that are (WCAG 2.2, 1.4.10: no cells of tables)."""


@pytest.mark.promise("Console", "At a zoom of 200 % and in 320 pixels no page scrolls sideways.")
@pytest.mark.parametrize(
    "look",
    [
        {"viewport": {"width": 320, "height": 640}},
        {"viewport": {"width": 640, "height": 400}, "device_scale_factor": 2},
    ],
    ids=["narrow", "zoom"],
)
@pytest.mark.long
def test_no_page_scrolls_sideways(
    crawl: Served, archives: Served, failed: Served, opened: Opened, look: dict[str, object]
) -> None:
    page = opened(crawl.address, complains=LATE, **look)
    moves(page)
    page.locator("#pages button").first.click()
    expect(page.locator("#why-answer .verdict")).to_contain_text("fetched")
    page.locator("#active th a").first.click()
    expect(page.locator("#host-answer dl")).not_to_contain_text("[object")
    over_time = page.locator("#host-answer svg")
    too_late = page.locator("#host-answer .bad")
    for _ in range(5):  # What reads gives way to all else, and a busy machine may leave it no time.
        expect(over_time.or_(too_late).first).to_be_visible(timeout=120_000)
        if over_time.is_visible():
            break
        page.locator("#host-shown").press("Enter")
    expect(over_time).to_be_visible()
    assert page.evaluate(WIDE) == [0, []]
    page = opened(failed.address, **look)
    expect(page.locator("#reasons tbody tr")).to_have_count(3)
    assert page.evaluate(WIDE) == [0, []]
    page = opened(archives.address, complains=("status of 404",), **look)
    page.get_by_text("More settings").click()
    page.select_option("#add-key", "scope.exclude")
    page.fill("#add-value", json.dumps(["https://example.org/" + 90 * "long"]))
    page.click("#add")
    page.click("#compare button")
    expect(page.locator("#compare-counts")).to_contain_text("From one to two")
    assert page.evaluate(WIDE) == [0, []]
    for button, dialog in (("Schedule…", "scheduling"), ("Continue…", "continuing"), ("Delete…", "deleting")):
        page.get_by_role("button", name=f"{button} one").click()
        expect(page.locator(f"#{dialog}")).to_be_visible()
        box = page.locator(f"#{dialog}").bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= page.viewport_size["width"]
        page.reload()
        expect(page.locator(f"#{dialog}")).to_be_hidden()
        expect(page.locator("#link")).to_have_text("live")
    page.get_by_role("link", name="one", exact=True).click()
    expect(page.locator("#pages tbody tr")).to_have_count(20)
    assert page.evaluate(WIDE) == [0, []]
    page.goto(f"{archives.base}nothing")
    assert page.evaluate(WIDE) == [0, []]


@pytest.mark.long
def test_an_answer_leaves_what_is_being_typed(crawl: Served, opened: Opened) -> None:
    page = opened(crawl.address)
    page.wait_for_selector("#set-key option", state="attached")  # Else the page's first question would be held.
    held: list[Route] = []
    page.route("**/api/config", lambda route: held.append(route))  # noqa: PLW0108 - it must bear attributes
    with page.expect_request("**/api/config"):
        changed(page, "crawl.concurrency", "255", "crawl.concurrency: 256 → 255")
    page.select_option("#set-key", "scope.exclude")
    page.fill("#set-value", '["typed"]')
    page.evaluate("document.querySelector('#set-key').firstChild.id = 'before'")
    held.pop().continue_()
    page.wait_for_selector("#before", state="detached")
    assert page.input_value("#set-value") == '["typed"]'
    page.unroute("**/api/config")
    changed(page, "crawl.concurrency", "256", "crawl.concurrency: 255 → 256")


def test_a_checkpoint_is_made(crawl: Served, web: Endless, opened: Opened) -> None:
    page = opened(crawl.address)
    page.click("#checkpoint")
    expect(page.locator("#said")).to_contain_text("A checkpoint is in")
    place = Path(page.locator("#said").inner_text().removeprefix("A checkpoint is in ").removesuffix("."))
    assert any(place.iterdir())


def test_without_the_token_nothing_can_be_commanded(crawl: Served, web: Endless, opened: Opened) -> None:
    page = opened(crawl.base)
    expect(page.locator("#hint")).to_contain_text("Controls are off")
    buttons = page.locator("button.control")
    expect(buttons).to_have_count(8)
    for button in buttons.all():
        expect(button).to_be_disabled()
    moves(page)
    refused = page.request.post(f"{crawl.base}api/pause", data={})
    assert refused.status == 401
    expect(page.locator("#state")).to_have_text("running")


def test_a_wrong_token_is_reported(crawl: Served, opened: Opened) -> None:
    page = opened(f"{crawl.base}#token=wrong", complains=("401",), live=False)
    expect(page.locator("#link")).to_contain_text("token is not that of what is served here: open the address")
    for unknown in ("#cards", "#pause", "#charts"):  # A crawl of which nothing is known is not shown as one that runs.
        expect(page.locator(unknown)).to_be_hidden()


@pytest.mark.promise("Console", "The dashboard shows text from the web as text.")
def test_what_pages_say_of_themselves_runs_nothing(crawl: Served, web: Endless, opened: Opened) -> None:
    page = opened(crawl.address)
    shown = page.locator("#pages .title-text", has_text="owned").first
    until(shown.count)
    text = shown.inner_text()
    assert text.startswith(SCRIPT)
    assert "\\u202e" in text
    page.fill("#why-url", "javascript:window.owned=1")
    page.press("#why-url", "Enter")
    expect(page.locator("#why-answer .verdict")).to_be_visible()
    hrefs = page.evaluate("[...document.links].map((link) => [link.protocol, link.rel, link.target])")
    assert {protocol for protocol, _, _ in hrefs} == {"http:"}
    assert {rel for _, rel, target in hrefs if target} == {"noopener noreferrer"}
    assert page.evaluate("window.owned") is None
    assert page.evaluate("document.querySelectorAll('main img, main script, main iframe').length") == 0
    assert page.title() == "crawl · Gossamer"
    policy = page.request.get(crawl.base).headers["content-security-policy"]
    assert "default-src 'self'" in policy
    assert "unsafe" not in policy


def test_it_is_used_with_the_keyboard_and_on_a_phone(crawl: Served, opened: Opened) -> None:
    page = opened(crawl.address, viewport=PHONE, color_scheme="dark")
    moves(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(18, 22, 28)"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the figures"
    for _ in range(3):
        page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "stop"
    page.keyboard.press("Enter")
    expect(page.locator("#stopping")).to_be_visible()
    assert page.evaluate("document.activeElement.id") == "stop-no"
    page.keyboard.press("Escape")
    expect(page.locator("#stopping")).to_be_hidden()
    expect(page.locator("#state")).to_have_text("running")


@pytest.mark.promise(
    "Console", "The dashboard passes the accessibility rules of axe-core, on a desktop and on a phone."
)
@pytest.mark.parametrize("look", [{"color_scheme": "light"}, {"color_scheme": "dark", "viewport": PHONE}])
@pytest.mark.long
def test_it_passes_the_rules_of_axe(crawl: Served, opened: Opened, look: dict[str, object]) -> None:
    assert AXE.exists(), "axe-core is missing: `make axe` fetches it"
    page = opened(crawl.address, complains=LATE, bypass_csp=True, **look)  # What checks the page comes from elsewhere.
    moves(page)
    page.locator("#pages button").first.click()
    expect(page.locator("#why-answer .timeline li")).not_to_have_count(0)
    page.locator("#active th a").first.click()
    expect(page.locator("#host-answer dl")).to_contain_text("requests")
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    assert [(one["id"], [node["html"] for node in one["nodes"]]) for one in found["violations"]] == []


@pytest.mark.long
@pytest.mark.promise("Console", "Continue is offered for a crawl that does not run where anything is left to fetch.")
def test_a_crawl_can_be_continued_where_something_is_left(opened: Opened, tmp_path: Path) -> None:
    site = tmp_path / "site"
    site.mkdir()
    (site / "index.html").write_text("<a href=/one>one</a>")
    (site / "one").write_text("text")
    with web_of(site) as address:
        for name, pages in (("all", "2"), ("part", "1")):
            done = subprocess.run(
                [sys.executable, "-m", "gossamer", "crawl", address, "-o", str(tmp_path / "many" / name), "--quiet",
                 "--allow-private", "--contact", "me@example.org", "--politeness", "own", "--max-pages", pages],
                env=environment(), timeout=240,
            )  # fmt: skip
            assert done.returncode == 0
    with Served("serve", "--folder", tmp_path / "many", "--port", "0") as served:
        page = opened(served.address, complains=LOST)
        expect(page.locator("#crawls .badge.finished")).to_have_count(2)
        expect(page.locator("#crawls button", has_text="Continue…")).to_have_count(1)
        expect(page.get_by_role("button", name="Continue… part")).to_be_enabled()
        for name, offers in (("all", False), ("part", True)):
            page.goto(f"{served.base}crawls/{name}/")
            expect(page.locator("#state")).to_have_text("finished")
            expect(page.locator("#resume")).to_be_visible(visible=offers)


@pytest.mark.long
def test_ten_thousand_hosts_are_counted_and_few_are_shown(opened: Opened, tmp_path: Path) -> None:
    hosts = [f"h{n}.example" for n in range(10_000)]
    (tmp_path / "hosts").write_text("".join(f"127.0.0.1 {host}\n" for host in hosts))
    (tmp_path / "site").mkdir()
    with web_of(tmp_path / "site") as address:
        port = address.rpartition(":")[2].strip("/")
        (tmp_path / "seeds").write_text("".join(f"http://{host}:{port}/\n" for host in hosts))
        with Served(
            "crawl", "--seeds", tmp_path / "seeds", "-o", tmp_path / "crawl", "--hosts", tmp_path / "hosts", "--serve",
            "0", "--allow-private", "--contact", "me@example.org", "--set", "crawl.stop_s=1",
            "--set", "politeness.address_delay_s=3600",  # All have one address: the last one waits.
        ) as served:  # fmt: skip
            page = opened(served.address, complains=LOST)
            expect(page.locator("#card-hosts small")).to_contain_text("10,000 known")
            expect(page.locator("#active tbody tr")).to_have_count(10)
            assert page.evaluate("document.querySelectorAll('*').length") < 3_000
            with urlopen(f"{served.base}api/status?detail=true") as answer:
                assert len(answer.read()) < 50_000
            with urlopen(f"{served.base}api/hosts?n=100") as answer:
                assert len(json.load(answer)["active"]) <= 100
            sent: list[str] = []
            page.on("request", lambda asked: sent.append(asked.url))
            page.fill("#host-shown", hosts[-1])
            page.press("#host-shown", "Enter")
            expect(page.locator("#host-answer dl")).to_contain_text("queued1 URLs")
            expect(page.locator("#host-answer")).to_contain_text("No requests so far.")
            assert len([url for url in sent if "/api/" in url and "events" not in url]) == 3


@contextmanager
def web_of(site: Path) -> Iterator[str]:
    """Serve the files of a folder; give the address."""
    handler = functools.partial(SimpleHTTPRequestHandler, directory=str(site))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    with serving(server):
        yield f"http://127.0.0.1:{server.server_port}/"


def test_it_says_at_a_glance_how_the_crawl_is(crawl: Served, opened: Opened) -> None:
    page = opened(crawl.address)
    expect(page.locator("#verdict")).to_have_text("Running well")
    expect(page.locator("#limits-now")).to_contain_text("active hosts)")
    page.click("#pause")
    expect(page.locator("#verdict")).to_contain_text("Paused")
    expect(page.locator("#health")).to_have_class("wide health warning")
    page.click("#unpause")
    expect(page.locator("#verdict")).to_have_text("Running well")


def test_a_host_is_shown_with_its_queue_and_its_requests(crawl: Served, opened: Opened) -> None:
    page = opened(crawl.address, complains=LATE)
    moves(page)
    page.locator("#active th a", has_text="walk.example").click()
    answer = page.locator("#host-answer")
    expect(answer.locator("dl")).to_contain_text("queued")
    expect(answer.locator("table")).to_contain_text("walk.example")
    assert page.url.endswith("#host=walk.example"), "it is an address that can be kept"
    page.reload()
    expect(answer.locator("dl")).to_contain_text("queued")
    answer.get_by_role("button", name="Exclude…").click()
    assert page.input_value("#exclude-hosts") == "walk.example"
    assert page.evaluate("document.activeElement.id") == "exclude-hosts"
    page.fill("#host-shown", "<b>no host")
    page.press("#host-shown", "Enter")
    expect(answer).to_contain_text("That is not the name of a host.")


def shown_version(archives: Served, web: Endless, opened: Opened, **look: object) -> Page:
    """Open a page with its archived versions, and show the last of them."""
    url = web.url("archived.example")
    base = f"{archives.base}crawls/one/"
    with urlopen(f"{base}api/versions?url={quote(url)}") as answer:
        port = json.load(answer)["replay_port"]
    token = archives.address.partition("#")[2]
    complains = ("sandboxed", f"http://127.0.0.1:{port}/", "status of 404", "Content Security Policy", archives.base)
    page = opened(f"{base}#{token}", complains=complains, **look)
    page.goto(f"{base}#url={quote(url, safe='')}")
    page.locator("#why-answer .copies button").first.click()
    expect(page.frame_locator("#replay iframe").locator("h2")).to_have_text("What was archived")
    return page


@pytest.mark.promise(
    "Console", "An archived page is shown from another origin than the console's, without scripts and without network."
)
@pytest.mark.long
def test_an_archived_page_is_shown_and_does_nothing(archives: Served, web: Endless, opened: Opened) -> None:
    since = len(web.log)
    page = shown_version(archives, web, opened)
    assert page.evaluate("document.querySelector('#replay iframe').contentDocument") is None, "it is another origin"
    frame = page.frame_locator("#replay iframe")
    frame.locator("button", has_text="send").click()
    frame.locator("a", has_text="leave").click()
    expect(frame.locator("p", has_text="number 2.")).to_be_visible()  # In its own frame, not on top.
    frame.locator("a", has_text="more").first.click()
    expect(frame.locator("p", has_text="number 3.")).to_be_visible()
    expect(frame.locator("p").first).to_have_text("This page leads to another one.")
    frame.locator("a", has_text="outside").click()
    expect(frame.locator("h1")).to_have_text("This page is not in the archive.")
    expect(frame.locator("p")).to_contain_text("/outside")
    assert page.evaluate("window.owned") is None
    assert page.url.startswith(f"{archives.base}crawls/one/"), "it leads nowhere else"
    assert web.asked("archived.example", since) == [], "and sends no request"
    assert {"/", "/refreshed", "/outside"}.isdisjoint(one.path for one in web.asked("walk.example", since))
    page.focus("#replay-close")
    page.keyboard.press("Escape")
    expect(page.locator("#replay")).to_be_hidden()
    expect(page.locator("iframe")).to_have_count(0)


@pytest.mark.long
def test_items_are_leafed_through_and_saved(archives: Served, opened: Opened) -> None:
    page = opened(f"{archives.base}crawls/one/{'#' + archives.address.partition('#')[2]}")
    page.locator("#items-show button").click()
    expect(page.locator("#items-says")).to_have_text("1 to 20 of 30, newest first.")
    expect(page.locator("#items-list tbody tr")).to_have_count(20)
    page.click("#items-older")
    expect(page.locator("#items-list tbody tr")).to_have_count(10)
    expect(page.locator("#items-older")).to_be_disabled()
    assert page.url.endswith("#items=")
    with page.expect_download() as saved:
        page.click("#items-csv")
    assert saved.value.suggested_filename == "page.csv"
    assert saved.value.path().read_text().count("What was archived") == 30
    page.locator("#items-list a").first.click()
    expect(page.locator("#why-answer .verdict")).to_contain_text("fetched")


def test_running_crawls_come_first_and_numbers_are_in_their_order(archives: Served, opened: Opened) -> None:
    page = opened(f"{archives.base}#token=wrong", complains=("401",), live=False)
    expect(page.locator("#link")).to_have_text(
        "the token is not that of what is served here: open the address that the server printed; trying again"
    )
    expect(page.locator("#counts")).to_have_text("Not known.")
    answer = json.loads(urlopen(f"{archives.base}api/crawls").read())
    one = answer["crawls"][0] | {"state": "finished", "resumable": True}  # Its figures may still be read.
    answer["crawls"] = [one | {"name": f"crawl-{n}", "runs": n == 100} for n in (1, 10, 100, 2)]
    answer["crawls"] += [one | {"name": f"failed-{n}", "state": "failed", "begun": bool(n)} for n in (0, 1)]
    page.route("**/api/crawls", lambda route: route.fulfill(json=answer))
    names = ["crawl-100", "crawl-1", "crawl-2", "crawl-10", "failed-0", "failed-1"]
    expect(page.locator("#crawls tbody th")).to_have_text(names)
    expect(page.locator("#crawls tbody tr td:last-child button:first-child")).to_have_text(
        ["Continue…"] * 4 + ["Start", "Continue…"]
    )
    start = page.get_by_role("button", name="Start", exact=True)
    expect(start).to_be_enabled()
    page.evaluate("sessionStorage.clear(); location.hash = 'new'")
    expect(start).to_be_disabled()


@pytest.mark.promise("Console", "Of a crawl that is over, the dashboard shows totals, and what failed and why.")
@pytest.mark.parametrize("look", [{"color_scheme": "light"}, {"color_scheme": "dark", "viewport": PHONE}])
@pytest.mark.long
def test_a_crawl_that_is_over_is_shown_by_what_came_of_it(
    failed: Served, opened: Opened, look: dict[str, object]
) -> None:
    page = opened(failed.address, bypass_csp=True, **look)
    expect(page.locator("#state")).to_have_text("finished")
    for unseen in (
        "#link",
        "#pause",
        "#stop",
        "#hint",
        "#levels",
        "#active",
        "#shards",
        "#seed",
        "#set",
        "#items",
        "#resume",
    ):
        expect(page.locator(unseen)).to_be_hidden()
    expect(page.locator("#card-pages b")).to_have_text("3")
    expect(page.locator("#card-failed b")).to_have_text("7")
    expect(page.locator("#card-failed small")).to_have_text("70.0% of 10 tried")
    expect(page.locator("#card-rate b")).to_have_text(re.compile("[1-9]"))
    expect(page.locator("#failures-says")).to_contain_text("7 of 10 attempts failed or were refused. By reason")
    rows = page.locator("#reasons tbody tr")
    expect(rows).to_have_count(3)
    expect(rows.first).to_contain_text("HTTP 404")
    expect(rows.first.locator(".url a")).to_have_count(3)
    if "viewport" in look:  # Below each other, not in columns of any width.
        places = [rows.first.locator(part).bounding_box() for part in ("th", ".url >> nth=0", "button")]
        assert places[0]["x"] == places[1]["x"]
        assert places[1]["y"] < places[2]["y"]
    expect(rows.nth(1)).to_contain_text("DNS error")
    expect(page.locator("#failed-hosts")).to_contain_text("HTTP 404")
    expect(page.locator("#chart-pending")).to_have_attribute("aria-label", re.compile("at most [1-9]"))
    assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"]
    assert page.evaluate("document.documentElement.scrollHeight") < (2_500 if "viewport" not in look else 4_500)
    expect(page.locator("#pages tbody tr")).to_have_count(3)
    wide = "[...document.querySelectorAll('.scroll')].filter((one) => one.scrollWidth > one.clientWidth)"
    assert page.evaluate(f"{wide}.map((one) => one.ariaLabel)") == []
    page.emulate_media(
        media="print"
    )  # What is last in a section may end a page, else the first one has the title alone.
    breaks = "(query) => getComputedStyle(document.querySelector(query)).breakAfter"
    assert [page.evaluate(breaks, query) for query in ("#verdict", "h2", "h2 + p")] == ["auto", "avoid", "avoid"]
    page.emulate_media(media="screen")
    rows.first.get_by_role("button").click()
    expect(page.locator("#why-answer .verdict")).to_contain_text("HTTP 404")
    page.fill("#host-shown", "unknown.example")
    page.press("#host-shown", "Enter")
    expect(page.locator("#host-answer")).to_have_text(re.compile("^unknown.example is not part of this crawl"))
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
    assert [(one["id"], [node["html"] for node in one["nodes"]]) for one in found] == []


@pytest.mark.promise("Console", "Where no seed could be fetched, the dashboard and the list of crawls say so, and why.")
@pytest.mark.long
def test_a_crawl_that_fetched_nothing_says_why(opened: Opened, tmp_path: Path) -> None:
    port = free_port()
    command = [
        sys.executable, "-m", "gossamer", "crawl", f"https://127.0.0.1:{port}/", "-o", str(tmp_path / "many/none"),
        "--allow-private", "--contact", "me@example.org", "--politeness", "own", "--quiet", "--max-time", "6s",
    ]  # fmt: skip
    subprocess.run(command, env=environment(), timeout=120)
    with Served("serve", "--folder", tmp_path / "many", "--port", "0") as served:
        page = opened(served.address, complains=LOST)
        expect(page.locator("#crawls tbody tr")).to_contain_text("no seed could be fetched")
        page.get_by_role("link", name="none").click()
        expect(page.locator("#failures-says")).to_have_text("No seed could be fetched.")
        expect(page.locator("#reasons tbody tr")).to_contain_text(f"https://127.0.0.1:{port} does not answer")
        for hidden in ("#failures-all", "#to-lately", "#charts"):
            expect(page.locator(hidden)).to_be_hidden()
        for typed, said in (
            ("not a host", "That is not the name of a host."),
            ("https://other.example/a", "other.example is not part of this crawl"),
            (f"127.0.0.1:{port}", f"could not fetch https://127.0.0.1:{port}"),
        ):
            page.fill("#host-shown", typed)
            page.press("#host-shown", "Enter")
            expect(page.locator("#host-answer")).to_contain_text(said)
        expect(page.locator("#host-answer")).to_contain_text(re.compile(r"failures\d+ in a row"))


def test_errors_of_a_crawl_that_runs_are_grouped_by_their_reason(crawl: Served, opened: Opened) -> None:
    page = opened(crawl.address)
    errors = [
        {"number": n, "at": n, "url": f"http://a.example/{n}", "outcome": outcome, "status": status, "error": error}
        for n, (outcome, status, error) in enumerate(
            [("http_error", 404, "HTTP 404")] * 3
            + [("timeout", None, "no byte for 30 s"), ("timeout", None, "no byte for 31 s")]
        )
    ]
    shown = page.evaluate(
        """async (errors) => {
            const { begin } = await import("/static/recent.js");
            begin({ pages: [], errors });
            const rows = [...document.querySelectorAll("#errors tbody tr")];
            return rows.map(({ cells }) => [cells[1].textContent, cells[2].textContent]);
        }""",
        errors,
    )
    assert shown == [
        ["2", "http://a.example/4timeout: no byte for 31 s"],
        ["3", "http://a.example/2HTTP error: HTTP 404"],
    ]


@pytest.mark.parametrize("look", [{"color_scheme": "light"}, {"color_scheme": "dark", "viewport": PHONE}])
@pytest.mark.long
def test_what_it_shows_of_archives_passes_the_rules_of_axe(
    archives: Served, web: Endless, opened: Opened, look: dict[str, object]
) -> None:
    page = shown_version(archives, web, opened, bypass_csp=True, **look)
    page.evaluate(AXE.read_text(encoding="utf-8"))
    check = "axe.run(document, {resultTypes: ['violations'], iframes: false})"
    found = page.evaluate(check)["violations"]
    page.click("#replay-close")
    for address, shown in (("#host=archived.example", "#host-answer svg"), ("#items=", "#items-list tbody tr")):
        page.evaluate("(hash) => { location.hash = hash; }", address)
        expect(page.locator(shown).first).to_be_visible()
    page.locator("#host-answer summary").click()
    assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"]
    found += page.evaluate(check)["violations"]
    page.goto(archives.base)
    page.click("#compare button")
    expect(page.locator("#compare-counts")).to_contain_text("From one to two: 4 new, 0 gone")
    assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"]
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found += page.evaluate(check)["violations"]
    assert [(one["id"], [node["html"] for node in one["nodes"]]) for one in found] == []


def test_a_tab_that_nobody_sees_listens_to_nothing(crawl: Served, opened: Opened) -> None:
    page = opened(crawl.address)
    page.evaluate("Object.defineProperty(document, 'hidden', {get: () => window.unseen})")
    turned = "window.unseen = {}; document.dispatchEvent(new Event('visibilitychange'))"
    with page.expect_event("requestfailed", lambda request: request.url.endswith("api/events")):
        page.evaluate(turned.format("true"))
    with page.expect_request("**/api/events"):
        page.evaluate(turned.format("false"))
    moves(page)


@pytest.mark.long
def test_it_stops_goes_on_where_it_was_and_shows_what_is_over(web: Endless, opened: Opened, tmp_path: Path) -> None:
    port = free_port()
    with crawl_of(web, tmp_path, "restarted.example", port=port, more=("--set", "search.enabled=true")) as served:
        page = opened(served.address, complains=LOST)
        moves(page)
        page.click("#stop")
        page.click("#stop-no")
        moves(page)
        page.click("#stop")
        page.click("#stop-yes")
        assert served.wait() == Exit.INTERRUPTED
    expect(page.locator("#link")).to_contain_text("trying again")
    before, since = number(page, "pages"), len(web.log)
    with Served("resume", tmp_path / "crawl", "--serve", str(port), "--set", "limits.max_pages=100000"):
        expect(page.locator("#link")).to_have_text("live")
        until(lambda: web.asked("restarted.example", since))
        until(lambda: number(page, "pages") > before)
    with Served("serve", tmp_path / "crawl", "--port", str(port)) as over:
        expect(page.locator("#state")).to_have_text("stopped")
        what_is_over_is_shown(opened(over.address), over, page.locator("#card-pages b").inner_text())


def test_the_state_of_a_crawl_that_was_killed_is_not_known(web: Endless, opened: Opened, tmp_path: Path) -> None:
    with crawl_of(web, tmp_path, "walk.example") as served:
        page = opened(served.address, complains=LOST)
        expect(page.locator("#state")).to_have_text("running")
        served.kill()
        expect(page.locator("#state")).to_have_text("no answer")
        expect(page.locator("#verdict")).to_have_text("No answer: the figures are the last that were received")
        expect(page.locator("#link")).to_have_text("no answer; trying again")
        expect(page.locator("#link")).to_have_text(
            "no answer; trying again; if the server was started again, open the address that it printed"
        )


@pytest.mark.promise("Console", "After a sleep of the machine the dashboard connects again by itself.")
def test_after_a_sleep_it_connects_again(crawl: Served, opened: Opened) -> None:
    """Of jippi/hashi-ui#119, canonical/lxd-ui#1307: figures of yesterday, and nothing that says so."""
    page = opened(crawl.address)
    page.clock.install()
    moves(page)
    with page.expect_request("**/api/events"):
        page.clock.fast_forward(600_000)
    expect(page.locator("#link")).to_have_text("live")
    expect(page.locator("#state")).to_have_text("running")
    moves(page)


def what_is_over_is_shown(page: Page, over: Served, pages: str) -> None:
    expect(page.locator("#card-pages b")).to_have_text(pages)
    page.get_by_label("All", exact=True).check(force=True)
    expect(page.locator("#chart-pages")).to_have_attribute("aria-label", re.compile(r"at most [1-9]"))
    expect(page.locator("#pages")).to_contain_text(re.compile(r"Page \d"))
    expect(page.locator("#health")).to_contain_text("gossamer resume")
    page.fill("#search-query", "wanted words")
    page.press("#search-query", "Enter")
    expect(page.locator("#search-answer .hit").first).to_contain_text("Page")
    expect(page.locator("#search-answer mark").first).to_have_text(re.compile("wanted|words", re.IGNORECASE))
    assert len(page.request.get(f"{over.base}api/course").json()["points"]) > 2


@pytest.mark.long
def test_a_server_of_many_begins_crawls_and_lists_them(web: Endless, opened: Opened, tmp_path: Path) -> None:
    more = {
        "resolve.hosts_file": str(web.names(tmp_path)), "resolve.allow_private": "true", "politeness.preset": "own",
        "crawl.commit_s": "0.2", "scope.traps": "false",
    }  # fmt: skip
    with Served("serve", "--folder", tmp_path / "many", "--port", "0") as served:
        page = opened(served.address, complains=(*REFUSED, *LOST))
        expect(page.locator("#crawls")).to_contain_text("None so far")
        page.fill("[name=name]", "one")
        page.fill("[name=seeds]", web.url("listed.example"))
        page.select_option("[name=scope]", "any")
        page.fill("[name=delay]", "0.1")
        page.fill("[name=depth]", "deep")
        page.fill("#new [name=when]", "every Monday at 3")
        page.get_by_text("More settings").click()
        for key, value in more.items():
            page.select_option("#add-key", key)
            page.fill("#add-value", value)
            page.click("#add")
        page.get_by_role("button", name="Start").click()
        expect(page.locator("section > .said")).to_contain_text("scope.depth_max")
        page.fill("[name=depth]", "")
        page.get_by_role("button", name="Start").click()
        expect(page.locator("#crawls .badge")).to_have_text("running")
        expect(page.locator("#crawls")).to_contain_text("every Monday at 3; next Mon")
        page.get_by_role("button", name="Schedule… one").focus()
        page.keyboard.press("Enter")
        expect(page.locator("#scheduling-title")).to_have_text("Schedule of one")
        page.keyboard.press("Escape")
        expect(page.get_by_role("button", name="Schedule… one")).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.locator("#zone")).to_contain_text("UTC")
        page.fill("#schedule [name=when]", "0 3 * * 1")
        page.click("#schedule [value=yes]")
        expect(page.locator("#said")).to_contain_text("'0 3 * * 1' is no schedule; write")
        page.get_by_role("button", name="Schedule… one").click()
        page.fill("#schedule [name=when]", "")
        page.press("#schedule [name=when]", "Enter")
        expect(page.locator("#said")).to_have_text("one has no schedule.")
        page.get_by_role("link", name="one").click()
        expect(page.locator("h1")).to_have_text("one")
        moves(page)
        page.click("#stop")
        page.click("#stop-now")
        expect(page.locator("#state")).to_have_text("stopped")
        since = len(web.log)
        page.click("#resume")
        expect(page.locator("#continuing")).to_contain_text("Nothing is deleted")
        page.get_by_role("button", name="Continue", exact=True).click()
        until(lambda: web.asked("listed.example", since))
        expect(page.locator("#state")).to_have_text("running")
        page.get_by_role("link", name="All crawls").click()
        page.get_by_role("button", name="Stop one").click()
        expect(page.locator("#crawls .badge")).to_have_text("stopped")


TYPED = {
    "1.000": 'is "1.000", expected a whole number; write 1000',
    "1'000": """is "1'000", expected a whole number; write 1000""",
    "10 000": 'is "10 000", expected a whole number; write 10000',
    "5MB": 'is "5MB", expected a whole number',
    "0": "is 0, expected 1 or more",
}
"""Numbers of pages that are refused, and the answers."""


def test_a_crawl_begins_and_continues_with_numbers_as_people_write_them(
    web: Endless, opened: Opened, tmp_path: Path
) -> None:
    more = {"resolve.hosts_file": str(web.names(tmp_path)), "resolve.allow_private": "true", "scope.traps": "false"}
    with Served("serve", "--folder", tmp_path / "many", "--port", "0") as served:
        page = opened(served.address, complains=(*REFUSED, *LOST))
        page.fill("#new [name=name]", "one")
        page.fill("#new [name=seeds]", web.url("listed.example"))
        page.fill("#new [name=delay]", "0,5")
        for typed, answer in TYPED.items():
            page.fill("#new [name=pages]", typed)
            page.get_by_role("button", name="Start").click()
            expect(page.locator("section > .said")).to_contain_text(answer)
            assert page.input_value("#new [name=pages]") == typed
        page.fill("#new [name=pages]", "1e3")
        page.get_by_text("More settings").click()
        for key, value in more.items():
            page.select_option("#add-key", key)
            page.fill("#add-value", value)
            page.click("#add")
        page.get_by_role("button", name="Start").click()
        expect(page.locator("#crawls .badge")).to_have_text("running")
        page.get_by_role("button", name="Stop one").click()
        expect(page.locator("#crawls .badge")).to_have_text("stopped")
        begun = (tmp_path / "many/one/crawl.toml").read_text()
        assert ("max_pages = 1000" in begun, "delay_s_min = 0.5" in begun) == (True, True)
        for typed, answer in {**TYPED, "2e3": "one: continues."}.items():
            page.get_by_role("button", name="Continue… one").click()
            page.fill("#continuing [name=pages]", typed)
            page.locator("#continuing").get_by_role("button", name="Continue", exact=True).click()
            expect(page.locator("#said")).to_contain_text(answer)
        until(lambda: "max_pages = 2000" in (tmp_path / "many/one/crawl.toml").read_text())
