"""Retries, permit, prerequisites, counters, logs: what each promises."""

from __future__ import annotations

import errno
from pathlib import Path

import msgspec
import pytest

from gossamer.engine.counters import LED_AWAY_MIN, NOTES_MAX, CrawlCounters, Totals
from gossamer.engine.history import page_record
from gossamer.engine.logs import Logs
from gossamer.engine.middleware import Middlewares
from gossamer.engine.options import CrawlOptions
from gossamer.engine.ring import Retries
from gossamer.engine.stages import levels_by
from gossamer.features.permit import Exclusions, RobotsTxt
from gossamer.model.links import ALLOWED, Link, Prerequisite, Verdict, Visit
from gossamer.model.pages import PageRow, Visited
from gossamer.model.standing import DownloadHistory, LastVisit, Standing
from gossamer.model.visits import Failure, Reply
from gossamer.ports import Conclusion, ExaminedPage, VisitMiddleware
from gossamer.stages.scope.lists import ExcludedHost
from gossamer.testing import FakeClock, page, reply
from gossamer.testing.fakes import Answers
from gossamer.url.name import Namer
from gossamer.url.url import Url
from gossamer.world.dice import Dice
from tests.engine.ring import Ring, url_of

ROOT = "http://a.example/"


def moved(target: str) -> Reply:
    return reply(b"", 301, (("Location", target),))


def rules(text: str) -> Reply:
    return reply(text.encode(), media_type="text/plain")


# ---- prioritizers


class FailingPrioritizer:
    def __init__(self, error: BaseException) -> None:
        self.error = error

    def level(self, link: Link) -> int:
        raise self.error


@pytest.mark.parametrize("error", [ValueError("no"), SystemExit("no")])
def test_a_prioritizer_that_fails_is_named(tmp_path: Path, error: BaseException) -> None:
    link = Link(url_of(ROOT), "anchor", 1)
    with Ring(tmp_path) as ring:
        failing = msgspec.structs.replace(ring.stages, prioritizer=FailingPrioritizer(error))
        says = f"^the prioritizer FailingPrioritizer failed on {ROOT}: {type(error).__name__}: no$"
        with pytest.raises(RuntimeError, match=says):
            levels_by(failing.prioritizer, ring.urls, ring.frontier)(link)


class Always:
    def __init__(self, level: int) -> None:
        self._level = level

    def level(self, link: Link) -> int:
        return self._level


@pytest.mark.parametrize(("given", "level"), [(-1, 0), (3, 3), (8, 7), (1 << 70, 7)])
def test_a_level_out_of_bounds_is_bounded(tmp_path: Path, given: int, level: int) -> None:
    with Ring(tmp_path) as ring:
        assert levels_by(Always(given), ring.urls, ring.frontier)(Link(url_of(ROOT), "anchor", 1)) == level


class ByHistory(Always):
    """Remembers what it was given."""

    def __init__(self) -> None:
        super().__init__(7)
        self.given: list[DownloadHistory] = []

    def level_by_history(self, link: Link, history: DownloadHistory) -> int:
        self.given.append(history)
        return 0


def test_a_prioritizer_gets_the_download_history_of_page_and_host(tmp_path: Path) -> None:
    with Ring(tmp_path) as ring:
        order = ByHistory()
        page = url_of(ROOT)
        link = Link(url_of(f"{ROOT}next"), "anchor", 1, 0, ROOT)
        level_of = levels_by(order, ring.urls, ring.frontier)
        assert level_of(link) == 0
        assert order.given == [DownloadHistory(None, None, Standing(page.host))]
        ring.frontier.add(Link(page, "anchor", 0), 0, ring.clock.now())
        row = PageRow(page.text, page.key, page.host, page.site, 7.0, "http_error", status=503, error="busy", attempt=2)
        ring.history.put(page, page_record(row, final=True))
        level_of(link)
        level_of(Link(page, "anchor", 1))
        last = LastVisit("http_error", 7.0, 503, 2, "busy")
        host = Standing(page.host, queued=1)
        assert order.given[1:] == [DownloadHistory(None, last, host), DownloadHistory(last, None, host)]


# ---- retries


def visit(attempt: int) -> Visit:
    return Visit(url_of(ROOT), 1, 2, "anchor", "", attempt)


def test_waits_double_with_jitter_up_to_the_longest() -> None:
    retries = Retries(10, 10.0, 100.0, Dice(3))
    waits = []
    for attempt in range(1, 10):
        again = retries.after(visit(attempt), "why", 1_000.0)
        assert again is not None
        assert (again.attempt, again.hops, again.error, again.url) == (attempt + 1, 2, "why", url_of(ROOT))
        waits.append(again.at - 1_000.0)
    for wait_s, least_s in zip(waits, [10, 20, 40, 80, 100, 100, 100, 100, 100], strict=True):
        assert least_s <= wait_s <= 1.5 * least_s
    assert len({round(wait_s, 6) for wait_s in waits[4:]}) > 1


@pytest.mark.parametrize("attempts_max", [1, 3])
def test_there_are_so_many_attempts_and_no_more(attempts_max: int) -> None:
    retries = Retries(attempts_max, 10.0, 100.0, Dice(3))
    assert retries.has_attempts_left(visit(attempts_max)) is False
    assert retries.after(visit(attempts_max), "", 0.0) is None
    assert attempts_max == 1 or retries.after(visit(attempts_max - 1), "", 0.0) is not None


def test_a_count_of_attempts_beyond_all_measure_is_no_overflow() -> None:
    again = Retries(10**9, 10.0, 100.0, Dice(3)).after(visit(10**6), "", 0.0)
    assert again is not None
    assert again.at <= 150


# ---- permit


class Said(msgspec.Struct):
    kind: str = "allowed"
    until: float = 0.0
    reason: str = ""
    alone: bool = False


class SayingRobots:
    def __init__(self, said: Said) -> None:
        self.said = said
        self.asked: list[Url] = []

    def turn_at(self, url: Url, now: float) -> float:
        return now

    def verdict(self, url: Url, now: float) -> Said:
        self.asked.append(url)
        return self.said

    def prerequisite(self, url: Url) -> Prerequisite:
        return Prerequisite(url, url_of(url.origin + "/robots.txt"))


def checks(excluded: ExcludedHost, robots: SayingRobots) -> Middlewares:
    exclusions = Exclusions(excluded)
    return Middlewares([exclusions, RobotsTxt(robots, None, url_of, exclusions.excludes, print)])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("said", "allowed", "prerequisite", "wait_until", "outcome"),
    [
        (Said("allowed"), True, False, 0.0, ""),
        (Said("denied"), False, False, 0.0, "robots_denied"),
        (Said("unknown"), False, True, 0.0, ""),
        (Said("wait", 77.0, "not yet"), False, False, 77.0, ""),
        (Said("given_up", reason="too long"), False, False, 0.0, "robots_unreachable"),
    ],
)
def test_what_robots_txt_says_becomes_a_verdict(
    said: Said, allowed: bool, prerequisite: bool, wait_until: float, outcome: str
) -> None:
    verdict = checks(ExcludedHost(), SayingRobots(said)).judge(visit(1), 1.0)
    assert verdict.allowed is allowed
    assert (verdict.prerequisite is not None) is prerequisite
    assert (verdict.wait_until, verdict.outcome) == (wait_until, outcome)


def test_the_exclusion_list_goes_before_robots_txt() -> None:
    excluded = ExcludedHost()
    excluded.add("a.example")
    robots = SayingRobots(Said("allowed"))
    assert checks(excluded, robots).judge(visit(1), 1.0).outcome == "excluded"
    assert not robots.asked


def test_middleware_may_judge_visits_alone() -> None:
    class OneAttempt(VisitMiddleware):
        def judge_visit(self, visit: Visit, now: float) -> Verdict:
            return Verdict(outcome="excluded") if visit.attempt > 1 else ALLOWED

    judged = Middlewares([OneAttempt()])
    assert [judged.judge(visit(attempt), 1.0).outcome for attempt in (1, 2)] == ["", "excluded"]


def test_what_a_middleware_makes_of_a_reply_is_what_all_others_see(tmp_path: Path) -> None:
    class Sealed(VisitMiddleware):
        name = "sealed"

        def received(self, url: Url, received: Reply, now: float) -> Reply:
            return msgspec.structs.replace(received, status=410)

    with Ring(tmp_path, {ROOT: page("/a")}) as ring:
        ring.with_feature(Sealed())
        ring.crawl(ROOT)
        assert [(row.status, row.outcome) for row in ring.rows] == [(410, "http_error")]
        assert ring.web.counts == {ROOT: 1}


def test_a_middleware_ends_the_visit_of_a_page_that_was_read(tmp_path: Path) -> None:
    class Doubting(VisitMiddleware):
        name = "doubting"

        def settle_document(self, page: ExaminedPage, now: float) -> Conclusion | None:
            return Conclusion("challenged", "as it says") if page.visit.url.text == ROOT else None

    with Ring(tmp_path, {ROOT: page("/a"), ROOT + "b": page()}) as ring:
        ring.with_feature(Doubting())
        ring.crawl(ROOT, ROOT + "b")
        assert ring.outcomes == {ROOT: "challenged", ROOT + "b": "fetched"}, "its links are not followed"
        assert next(row.error for row in ring.rows if row.url == ROOT) == "as it says"


# ---- prerequisites


def robots_chain(*targets: str) -> dict[str, Answers]:
    pages: dict[str, Answers] = {ROOT: page()}
    address = ROOT + "robots.txt"
    for target in targets:
        pages[address] = moved(target)
        address = target
    pages[address] = rules("User-agent: *\nDisallow: /")
    return pages


def test_a_robots_txt_is_followed_to_other_hosts_through_their_gates(tmp_path: Path) -> None:
    pages = robots_chain("http://b.example/r", "https://c.example/robots.txt")
    with Ring(tmp_path, pages, obey=True) as ring:
        ring.crawl(ROOT)
        assert [request.url for request in ring.web.requests] == [
            ROOT + "robots.txt", "http://b.example/r", "https://c.example/robots.txt",
        ]  # fmt: skip
        assert ring.outcomes == {ROOT: "robots_denied"}
        assert ring.frontier.facts(url_of("http://b.example/")).requests == 1


def test_five_redirects_of_a_robots_txt_are_followed_and_a_sixth_is_not(tmp_path: Path) -> None:
    five = [f"http://h{n}.example/robots.txt" for n in range(5)]
    with Ring(tmp_path / "five", robots_chain(*five), obey=True) as ring:
        ring.crawl(ROOT)
        assert ring.outcomes == {ROOT: "robots_denied"}
    with Ring(tmp_path / "six", robots_chain(*five, "http://h6.example/robots.txt"), obey=True) as ring:
        ring.crawl(ROOT)
        assert ring.outcomes == {ROOT: "fetched"}  # RFC 9309, section 2.3.1.2: as if there were none.
        assert "http://h6.example/robots.txt" not in ring.web.counts


def test_a_robots_txt_that_redirects_in_a_circle_ends(tmp_path: Path) -> None:
    with Ring(tmp_path, {ROOT + "robots.txt": moved(ROOT + "robots.txt"), ROOT: page()}, obey=True) as ring:
        ring.crawl(ROOT)
        assert ring.outcomes == {ROOT: "fetched"}
        assert ring.web.counts[ROOT + "robots.txt"] == 6


@pytest.mark.parametrize("target", ["http://closed.example/robots.txt", "http://", "mailto:me@example.org"])
def test_a_robots_txt_that_leads_to_where_nobody_can_be_asked_is_unreachable(tmp_path: Path, target: str) -> None:
    pages: dict[str, Answers] = {ROOT + "robots.txt": moved(target), ROOT: page()}
    with Ring(tmp_path, pages, obey=True, robots={"robots_wait_max_s": 100}) as ring:
        ring.frontier.control.close(url_of("http://closed.example/"), "it is closed", ring.clock.now())
        ring.crawl(ROOT)
        assert set(ring.outcomes) == {ROOT}
        assert ring.outcomes[ROOT] in {"robots_unreachable", "fetched"}
        assert ring.frontier.counts.pending == 0


def test_a_host_whose_crawl_delay_is_beyond_our_patience_closes(tmp_path: Path) -> None:
    pages: dict[str, Answers] = {ROOT + "robots.txt": rules("User-agent: *\nCrawl-delay: 100000"), ROOT: page()}
    with Ring(tmp_path, pages, obey=True) as ring:
        ring.crawl(ROOT)
        assert ring.frontier.counts.terminal == {"host_closed": 1}
        assert "Crawl-delay" in str(ring.explainer.why(ROOT)["reason"])


def test_a_prerequisite_that_failed_is_logged_with_its_address(tmp_path: Path) -> None:
    pages: dict[str, Answers] = {ROOT + "robots.txt": Failure("timeout", "too long"), ROOT: page()}
    with Ring(tmp_path, pages, obey=True, robots={"robots_wait_max_s": 0}) as ring:
        ring.crawl(ROOT)
        line = ring.log("info.log")[0]
        assert (line["event"], line["url"], line["error"]) == ("robots", ROOT + "robots.txt", "too long")


# ---- counters


def test_mistakes_far_apart_are_forgiven() -> None:
    counters = CrawlCounters(Totals(), CrawlOptions(errors_max=3, errors_s=10))
    for now in (0.0, 6.0, 12.0, 18.0, 24.0):
        counters.count_error(KeyError(str(now)), now)
    assert counters.fatal_error is None
    counters.count_error(KeyError("last"), 25.0)
    assert str(counters.fatal_error) == "'last'"


def test_the_first_fatal_error_is_the_one_that_is_reported() -> None:
    counters = CrawlCounters(Totals(), CrawlOptions())
    first = OSError(errno.ENOSPC, "full")
    counters.fatal(first)
    counters.fatal(KeyError("second"))
    assert counters.fatal_error is first


def test_rates_are_those_of_the_last_seconds() -> None:
    counters = CrawlCounters(Totals(), CrawlOptions())
    assert counters.rates(0.0) == (0.0, 0.0)
    counters.sample(0.0)
    assert counters.rates(0.0) == (0.0, 0.0), "at once"
    for second in range(100):
        counters.sample(float(second))
        counters.totals.pages += 1 if second < 90 else 5
        counters.totals.wire_bytes += 1_000
    assert counters.rates(100.0) == pytest.approx((5.0, 1_000.0))


def test_redirects_in_a_row_to_one_page_may_be_those_of_a_login() -> None:
    counters = CrawlCounters(Totals(), CrawlOptions())

    def visit(outcome: str, path: str, to: str = "") -> None:
        url = url_of(f"https://a.test/{path}")
        row = PageRow(url.text, url.key, url.host, url.site, 0.0, outcome, redirect_to=to)
        counters.count_visit(Visited(url, row), seed=False)

    for number in range(LED_AWAY_MIN - 1):
        visit("redirected", str(number), f"https://a.test/login?next={number}")
        visit("fetched", f"login?next={number}")
    assert counters.passing == {}
    visit("redirected", "last", "https://a.test/login?next=last#form")
    assert "redirects all lead to https://a.test/login: a session" in counters.passing["redirects"]
    visit("http_error", "other")
    assert counters.passing
    visit("fetched", "page")
    assert counters.passing == {}
    for number in range(2 * LED_AWAY_MIN):
        visit("redirected", str(number), f"https://a.test/{number}/")
    assert counters.passing == {}


def test_notes_reach_all_listeners_and_the_last_are_kept() -> None:
    counters = CrawlCounters(Totals(), CrawlOptions())
    heard: list[str] = []
    counters.listeners.append(heard.append)
    for number in range(NOTES_MAX + 5):
        counters.note(str(number))
    assert len(heard) == NOTES_MAX + 5
    assert (len(counters.notes), counters.notes[0], counters.notes[-1]) == (NOTES_MAX, "5", str(NOTES_MAX + 4))


def test_what_features_warn_of_is_shown_until_they_or_the_configuration_end_it() -> None:
    counters = CrawlCounters(Totals(), CrawlOptions())
    for feature, subject in (("login", "b"), ("login", "a"), ("lost", "a.test"), ("login", "c")):
        counters.warn(feature, subject, f"{feature} of {subject} failed")
    counters.warn("login", "c", "")
    counters.warn("login", "d", "")
    assert counters.totals.warnings() == ["login of a failed", "login of b failed", "lost of a.test failed"]
    assert list(counters.notes)[-1] == "login of c failed", "the end of a warning is no note"
    counters.keep_warnings_of({"lost", "walls"})
    assert counters.totals.warnings() == ["lost of a.test failed"]
    counters.warn_for_now("proxy", "it is left out")
    assert (counters.passing, counters.notes[-1]) == ({"proxy": "it is left out"}, "it is left out")
    counters.warn_for_now("proxy", "")
    assert (counters.passing, counters.totals.warnings()) == ({}, ["lost of a.test failed"])


def test_figures_of_features_are_sums() -> None:
    counters = CrawlCounters(Totals(), CrawlOptions())
    for more in (0.1234, 0.2, 1):
        counters.add("rendering", "cpu_s", more)
    counters.add("rendered", "rendered")
    assert counters.totals.figures == {"rendering": {"cpu_s": 1.323}, "rendered": {"rendered": 1}}


# ---- logs


def test_expected_errors_wait_for_the_commit_and_ours_do_not(tmp_path: Path) -> None:
    logs = Logs(tmp_path, FakeClock(0.0))
    logs.info("timeout", url=ROOT, error="line\nbreak \x1b[2J")
    assert (tmp_path / "info.log").read_bytes() == b""
    try:
        raise KeyError("ours")
    except KeyError as error:
        logs.critical("internal_error", error, url=ROOT)  # noqa: PLE1205 - no logging module
    critical = msgspec.json.decode((tmp_path / "critical.log").read_bytes())
    assert critical["at"] == "1970-01-01T00:00:00.000+00:00"
    assert critical["error"] == "KeyError: 'ours'"
    assert "test_expected_errors_wait" in critical["traceback"]
    logs.flush()
    (line,) = (tmp_path / "info.log").read_bytes().splitlines()
    assert msgspec.json.decode(line)["error"] == "line\nbreak \x1b[2J"
    assert b"\x1b" not in line
    logs.close()


def test_logs_go_on_where_they_were(tmp_path: Path) -> None:
    for number in range(3):
        logs = Logs(tmp_path, FakeClock())
        logs.info("run", number=number)
        logs.close()
    lines = (tmp_path / "info.log").read_bytes().splitlines()
    assert [msgspec.json.decode(line)["number"] for line in lines] == [0, 1, 2]


def test_a_full_disk_loses_log_lines_and_nothing_else(tmp_path: Path) -> None:
    logs = Logs(tmp_path, FakeClock())
    file = logs._files["info.log"]

    class Full:
        def write(self, _: bytes) -> None:
            raise OSError(errno.ENOSPC, "full")

    logs._files["info.log"] = Full()  # type: ignore[assignment]
    logs.info("lost")
    logs.flush()
    logs._files["info.log"] = file
    logs.info("kept")
    logs.close()
    assert msgspec.json.decode((tmp_path / "info.log").read_bytes())["event"] == "kept"


# ---- the port of a request


@pytest.mark.parametrize(
    ("url", "port"),
    [
        ("http://a.example/", 80),
        ("https://a.example/x?y", 443),
        ("http://a.example:8080/", 8080),
        ("http://[::1]/", 80),
        ("http://[::1]:81/", 81),
        ("http://user:99@a.example/", 80),
        ("ftp://a.example/", 21),
        ("ftp://a.example:2121/x", 2121),
        ("gopher://a.example/", 70),
    ],
)
def test_a_url_names_its_port_or_has_its_schemes(url: str, port: int) -> None:
    assert Namer().port(url_of(url)) == port
