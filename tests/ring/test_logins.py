"""Behind a login: every page is fetched once as its owner sees it, and no secret goes anywhere else."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

from gossamer.model.errors import ConfigError
from tests import guarded
from tests.chromium import launch_chromium
from tests.commands import run
from tests.guarded import AREAS, KEY, PAGES, PASSWORD, TOKEN, USER, Site, served, settings
from tests.ring.crawls import OWN, Crawled, command_line, crawl, rows, until
from tests.ring.test_secrets import contents


@pytest.fixture
def names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    for name, value in (("SITE_PASSWORD", PASSWORD), ("SITE_TOKEN", TOKEN), ("SITE_KEY", KEY)):
        monkeypatch.setenv(name, value)
    file = tmp_path / "hosts"
    file.write_text("127.0.0.1 ours.test theirs.test\n")
    return f"resolve.hosts_file={file}"


def titles(found: list[dict[str, object]]) -> set[str]:
    return {str(row["title"]) for row in found if row["outcome"] == "fetched"}


def crawled_wholly(found: list[dict[str, object]], ours: Site, theirs: Site) -> None:
    """See that all pages are there as their owner sees them, and that no credential went to another place."""
    assert titles(found) >= {f"{area} {number} of {USER}" for area in AREAS for number in range(PAGES)}
    assert ours.count("GET", "/logout") == 0
    mine = ("authorization", "cookie")
    assert not [one for one in theirs.asked if any(name in one[2] for name in mine) or KEY in one[1]]
    assert {target.partition("?")[0] for _, target, _ in theirs.asked} >= {
        "/landing",
        *(f"/{area}/0" for area in AREAS),
    }
    for _, target, headers in ours.asked:
        area = target.split("/")[1]
        said = headers.get("authorization", "")
        assert not said or area in ("basic", "digest", "bearer", "api"), target
        assert (TOKEN in said) <= (area == "bearer"), target
        assert ("key=" in target) == (area == "key" and "/key/" in target), target


def shown_in(directory: Path, ours: Site) -> list[str]:
    """Return the files in which a secret is, and those but the state in which a session's cookie is."""
    fixed = (PASSWORD.encode(), TOKEN.encode(), KEY.encode(), b"pa55-XYZZY")
    made = tuple(one.encode() for one in ours.made)
    state = str(directory / "state")
    return [
        place
        for place, data in contents(directory)
        if any(one in data for one in fixed) or (not place.startswith(state) and any(one in data for one in made))
    ]


@pytest.mark.promise("Operation", "A crawl logs in by form or token, and again when its session has ended.")
@pytest.mark.promise("Operation", "Credentials reach the origin that they are for, and no other.")
@pytest.mark.promise("Operation", "No output shows credentials.")
def test_a_site_behind_logins_is_crawled_wholly(tmp_path: Path, names: str) -> None:
    with served() as (ours, theirs):
        seed = f"http://ours.test:{ours.port}/"
        found: Crawled = crawl((seed,), tmp_path / "crawl", *OWN, names, *settings(ours), scope="any")
    assert found.end == "finished", found.critical()
    crawled_wholly(found.rows, ours, theirs)
    assert not shown_in(tmp_path / "crawl", ours)
    assert ours.busiest == 1, "one request at a time uses a session"
    assert ours.count("POST", "/session") == 2, "eight pages, five a session"
    assert ours.count("POST", "/api/login") == 3, "eight pages, three a token"
    counted = guarded.outcomes([row for row in found.rows if row["host"] == "ours.test"])
    assert (counted["app", "fetched"], counted["app", "login_required"]) == (PAGES, 1)
    assert counted["digest", "http_error"] == 3, "the challenge, a stale nonce, and a page that is not there"
    assert counted["logout", "excluded"] == counted["login", "excluded"] == 1
    pages = [row for row in found.rows if row["outcome"] == "fetched" and str(row["url"]).split("/")[3] in AREAS]
    assert {row["host"] for row in pages if row["authenticated"]} == {"ours.test"}
    assert {row["host"] for row in pages if not row["authenticated"]} == {"theirs.test"}
    unpacked = b"".join(data for place, data in contents(tmp_path / "crawl") if place.endswith("warc.gz unpacked"))
    assert unpacked.count(b"Gossamer-Authenticated: yes\r\n") == 2 * sum(
        bool(row["authenticated"]) for row in found.rows
    )
    assert b"Set-Cookie: session=[redacted]; Path=/; HttpOnly\r\n" in unpacked
    assert b"Cookie: [redacted]\r\n" in unpacked
    assert b"/key/1?key=[redacted] HTTP" in unpacked
    assert b"POST /" not in unpacked, "requests of a login are not archived"


@pytest.mark.heavy
@pytest.mark.long
@pytest.mark.promise("Crash safety", "A crash neither loses a session nor brings back one that had ended.")
def test_a_site_behind_logins_is_crawled_wholly_in_spite_of_kills(tmp_path: Path, names: str) -> None:
    with served() as (ours, theirs), command_line(tmp_path / "crawl") as running:
        sets = (*OWN, names, *settings(ours), "politeness.delay_s_min=0.05", "crawl.commit_s=0.1", "scope.scope=any")
        running.crawl((f"http://ours.test:{ours.port}/",), *sets)
        for pages in (6, 18, 30):
            until(lambda: len(ours.asked) >= pages)  # noqa: B023 - called at once
            running.until_commit()
            running.kill_child()
        assert running.wait() == 0
    found = rows(tmp_path / "crawl/pages")
    crawled_wholly(found, ours, theirs)
    assert not shown_in(tmp_path / "crawl", ours)
    fetched = [str(row["url"]) for row in found if row["outcome"] == "fetched" and "/app/" in str(row["url"])]
    assert len([url for url in fetched if "ours.test" in url]) == PAGES, "each page is there once"


@pytest.mark.heavy
@pytest.mark.promise("Crash safety", "A crash neither loses a session nor brings back one that had ended.")
@pytest.mark.long
def test_kills_between_a_challenge_and_its_answer_do_not_use_up_the_attempts_of_a_page(
    tmp_path: Path, names: str
) -> None:
    with served() as (ours, _), command_line(tmp_path / "crawl") as running:
        sets = (*OWN, names, *settings(ours), "politeness.delay_s_min=1", "crawl.commit_s=0.1", "scope.depth_max=0")
        running.crawl((f"http://ours.test:{ours.port}/digest/0",), *sets)
        for kills in range(4):
            until(lambda: ours.count("GET", "/digest/0") > kills)  # noqa: B023 - called at once
            running.until_commit()
            running.kill_child()
        assert running.wait() == 0
    assert f"digest 0 of {USER}" in titles(rows(tmp_path / "crawl/pages"))


@pytest.mark.promise("Operation", "A crawl logs in by form or token, and again when its session has ended.")
def test_a_page_that_failed_before_its_session_ended_is_requested_again(tmp_path: Path, names: str) -> None:
    with served() as (ours, _):
        ours.session_pages = 1
        ours.failures[1] = 2
        sets = (*OWN, names, *settings(ours), "frontier.retry_s_first=0.1", "politeness.backoff_s_first=0.1")
        found = crawl((f"http://ours.test:{ours.port}/app/0",), tmp_path / "crawl", *sets)
    assert found.end == "finished", found.critical()
    assert titles(found.rows) >= {f"app {number} of {USER}" for number in range(PAGES)}


@pytest.mark.heavy
def test_a_login_that_fails_is_given_up_and_status_says_why(
    tmp_path: Path, names: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SITE_PASSWORD", "wr0ng")
    with served() as (ours, _):
        seed = f"http://ours.test:{ours.port}/"
        found = crawl((seed,), tmp_path / "crawl", *OWN, names, *settings(ours))
        assert found.end == "finished", found.critical()
        assert ours.count("POST", "/session") == 3
        counted = guarded.outcomes(found.rows)
        assert (counted["app", "login_required"], counted["api", "login_required"]) == (1, 1)
        assert counted["bearer", "fetched"] == PAGES, "others go on"
        says = (
            "login.app was given up: the check failed: no cookie 'session' after HTTP 200 (3 of 3 attempts); URLs that"
        )
        warnings = found.status["warnings"]
        assert isinstance(warnings, list)
        assert [one.startswith(says) for one in warnings] == [False, True]
        status, out, err = run("status", str(tmp_path / "crawl"))
        assert (status, err) == (0, "")
        assert says in " ".join(out.split())
        assert not [one for one in (out, *map(str, found.rows)) if "wr0ng" in one]
        again = crawl((), tmp_path / "crawl", resuming=True)
        assert ours.count("POST", "/session") == 6
        assert guarded.outcomes(again.rows)["app", "login_required"] == 2
        monkeypatch.setenv("SITE_PASSWORD", PASSWORD)
        mended = crawl((), tmp_path / "crawl", resuming=True)
        assert mended.end == "finished", mended.critical()
        assert titles(mended.rows) >= {
            f"{area} {number} of {USER}" for area in ("app", "api") for number in range(PAGES)
        }
        assert mended.status["warnings"] == []


@pytest.mark.promise("Operation", "Cookies come and go as Netscape files, and are sent to their site alone.")
def test_cookies_of_a_file_are_taken_once_and_can_be_listed(tmp_path: Path, names: str) -> None:
    jar = tmp_path / "cookies.txt"
    with served() as (ours, theirs):
        first = ours.new_session(20)
        jar.write_text(f"ours.test\tFALSE\t/\tFALSE\t0\tsession\t{first}\nother.test\tFALSE\t/\tFALSE\t0\tx\ty\n")
        seed = f"http://ours.test:{ours.port}/app/0"
        sets = (*OWN, names, f"cookies.file={jar}", "scope.exclude=['logout']")
        known = crawl((seed,), tmp_path / "crawl", *sets, "limits.max_pages=3", scope="any")
        assert known.end == "limit"
        rest = crawl((), tmp_path / "crawl", "limits.max_pages=none", resuming=True)
        pages = titles(rest.rows)
        assert pages >= {f"app {number} of {USER}" for number in range(PAGES)}, "the session went on"
        assert not [one for *_, one in theirs.asked if "session=" in one.get("cookie", "") or first in str(one)]
    assert not [place for place in shown_in(tmp_path / "crawl", ours) if "cookies" not in place]
    status, out, err = run("cookies", str(tmp_path / "crawl"))
    assert (status, err) == (0, "")
    [mine] = [line for line in out.splitlines() if "\tsession\t" in line]
    assert mine.split("\t")[5:] == ["session", ours.made[-1]], "the last one, which only the owner of the crawl knows"
    assert "other.test" in out
    assert run("cookies", str(tmp_path / "crawl"), "-o", str(tmp_path / "out"))[0] == 0
    for folder in ("/", str(tmp_path)):
        status, _, err = run("cookies", str(tmp_path / "crawl"), "-o", folder)
        assert (status, err) == (2, f"gossamer: {folder} is a directory; name a file in it with -o FILE\n")
    assert (tmp_path / "out").read_text() == out
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "crawl/state").stat().st_mode) == 0o700


@pytest.mark.promise("Operation", "A session of given cookies that has ended is reported.")
def test_a_session_of_given_cookies_that_has_ended_is_reported_until_the_next_run(tmp_path: Path, names: str) -> None:
    jar = tmp_path / "cookies.txt"
    with served() as (ours, _):
        jar.write_text("ours.test\tFALSE\t/\tFALSE\t0\tsession\tover\n")
        seed = f"http://ours.test:{ours.port}/app/0"
        sets = (*OWN, names, f"cookies.file={jar}")
        found = crawl((seed,), tmp_path / "crawl", *sets)
        [warning] = found.status["warnings"]
        assert warning.startswith(
            f"http://ours.test:{ours.port}/login?next=/app/0 and others of ours.test show a login"
        )
        assert "`gossamer login DIR URL`" in warning
        status, out, _ = run("report", str(tmp_path / "crawl"))
        assert status == 0
        assert "show a login" in out
        jar.write_text(f"ours.test\tFALSE\t/\tFALSE\t0\tsession\t{ours.new_session(2 * PAGES)}\n")
        again = crawl((seed,), tmp_path / "other", *sets, "scope.exclude=['logout']")
        assert again.status["warnings"] == [], "a page with a form beside pages"


@pytest.mark.acceptance
@pytest.mark.promise("Operation", "A crawl continues the session of a browser that Playwright recorded.")
def test_a_session_that_a_browser_began_is_continued(tmp_path: Path, names: str) -> None:
    state = tmp_path / "state.json"
    with served() as (ours, theirs):
        ours.session_pages = 2 * PAGES
        root = f"http://ours.test:{ours.port}"
        with sync_playwright() as playwright:
            browser = launch_chromium(playwright, "--host-resolver-rules=MAP ours.test 127.0.0.1")
            page = browser.new_page()
            page.goto(f"{root}/login")
            page.fill("[name=user]", USER)
            page.fill("[name=password]", PASSWORD)
            page.click("[name=go]")
            page.wait_for_url(f"{root}/?in")
            page.context.storage_state(path=state)
            browser.close()
        found = crawl((f"{root}/app/0",), tmp_path / "crawl", *OWN, names, f"cookies.file={state}",
                      "scope.exclude=['logout']", scope="any")  # fmt: skip
    assert titles(found.rows) >= {f"app {number} of {USER}" for number in range(PAGES)}
    assert ours.count("POST", "/session") == 1, "the browser's"
    assert not [one for *_, one in theirs.asked if any(made in str(one) for made in ours.made)]
    assert not [place for place in shown_in(tmp_path / "crawl", ours) if "cookies" not in place]


def test_what_cannot_be_a_login_is_refused(tmp_path: Path) -> None:
    rule = 'url = "http://ours.test/login", fields = {user = "x"}'
    for more, complaint in (
        ("", "expected check"),
        (', check = {text = "a", cookie = "b"}', "expected one of text"),
        (', check = {redirect = "("}', "is not a regular expression"),
        (', check = {text = "a"}, token = "b"', "expected no form and no check beside token"),
        (', token = "b", place = "theirs.test"', "is not on the site of url"),
        (', token = "b", logged_out = "p["', "is no CSS selector"),
    ):
        with pytest.raises(ConfigError, match=complaint):
            crawl(("http://ours.test/",), tmp_path / "crawl", f"login.app={{{rule}{more}}}", contact="a@b.c")
