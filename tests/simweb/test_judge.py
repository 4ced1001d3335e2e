from __future__ import annotations

import pytest

from gossamer.lab.simweb.hosts import WebHost
from gossamer.lab.simweb.judge import Promise, judge, politeness_gaps, repeats
from gossamer.lab.simweb.log import Logged
from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.web import Web
from tests.rates import rates

PROMISE = Promise(delay_s_min=1.0, factor=10.0, delay_s_max=60.0, address_delay_s=0.2)
WEB = Web(SimwebOptions(hosts=60, pages=600, port=8480))


def host_of(robots: str, *, beside: WebHost | None = None) -> WebHost:
    """Return a host by its kind of robots.txt, or the first other one on the same address."""
    if beside is not None:
        return next(host for host in WEB.hosts if host.address == beside.address and host != beside)
    return next(host for host in WEB.hosts if host.robots == robots and host.mirror_of < 0 and not host.slow)


PLAIN = host_of("robots_404")


def entry(at: WebHost, path: str, start: float, fetch_s: float = 0.01, **changes: object) -> Logged:
    status = WEB.page(at.name, path, 9).status
    base = Logged(start, start + fetch_s, start, at.address, at.name, path, status, 1, 1, 100, True, 0.0, "GET", "test")
    return Logged(**{name: changes.get(name, getattr(base, name)) for name in Logged.__struct_fields__})


def visit(
    host: WebHost, paths: list[str], start: float = 100.0, gap_s: float = 1.001, fetch_s: float = 0.01
) -> list[Logged]:
    """Return a polite visit: robots.txt first, then the paths."""
    return [entry(host, path, start + k * (gap_s + fetch_s), fetch_s) for k, path in enumerate(["/robots.txt", *paths])]


def kinds(log: list[Logged], promise: Promise = PROMISE, **how: object) -> list[str]:
    return [violation.kind for violation in judge(log, promise, WEB, **how)]


PATHS = ["/", "/about/p1.html", "/people/p2.html"]


def test_a_polite_visit_is_clean() -> None:
    assert kinds(visit(PLAIN, PATHS)) == []


def test_a_short_gap_on_a_host() -> None:
    log = visit(PLAIN, PATHS)
    late = log[-1]
    early = entry(PLAIN, late.path, late.started_at - 0.1)
    (violation,) = judge([*log[:-1], early], PROMISE, WEB)
    assert (violation.kind, violation.path, violation.needed_s) == ("gap_host", late.path, 1.0)
    assert violation.actual_s == pytest.approx(0.901)


def test_the_gap_counts_from_the_end_of_a_request() -> None:
    assert kinds(visit(PLAIN, PATHS, gap_s=0.5, fetch_s=0.6)) == ["gap_host"] * 3


def test_the_gap_grows_with_the_last_five_fetch_times() -> None:
    paths = [f"/errors/{k}" for k in range(6)]
    assert kinds(visit(PLAIN, paths, gap_s=2.0, fetch_s=0.1)) == []
    # The first fetch of 0.3 s demands 3 s already: all that follow come too soon.
    assert kinds(visit(PLAIN, paths, gap_s=2.0, fetch_s=0.3)) == ["gap_host"] * 6
    gaps = politeness_gaps(visit(PLAIN, paths, fetch_s=100.0), PROMISE, 0.0, ())
    assert [gap for gap, _ in gaps] == [60] * 7


def test_after_a_restart_the_fetch_times_may_be_forgotten() -> None:
    paths = [f"/errors/{k}" for k in range(6)]
    log = visit(PLAIN, paths, gap_s=2.0, fetch_s=0.3)
    assert kinds(log, restarts=[log[0].started_at - 0.1]) == ["gap_host"] * 2, "after five new ones they count again"
    assert kinds(log, restarts=[log[4].started_at - 0.1]) == ["gap_host"] * 4, (
        "what came before is judged by what was known"
    )


def test_connecting_counts_as_contact() -> None:
    log = visit(PLAIN, PATHS)
    log[-1] = entry(PLAIN, log[-1].path, log[-1].started_at, opened_at=log[-1].started_at - 0.9)
    assert kinds(log) == ["gap_host", "gap_address"]
    kept = entry(PLAIN, log[-1].path, log[-1].started_at, opened_at=100.0, nth=4)
    assert kinds([*log[:-1], kept]) == []


def test_tolerance_forgives_its_amount_and_no_more() -> None:
    assert kinds(visit(PLAIN, PATHS, gap_s=0.997)) == []
    assert kinds(visit(PLAIN, PATHS, gap_s=0.99)) == ["gap_host"] * 3
    assert kinds(visit(PLAIN, PATHS, gap_s=0.99), tolerance_s=0.02) == []


def test_two_requests_at_once_to_a_host() -> None:
    log = visit(PLAIN, PATHS)
    log.append(entry(PLAIN, "/work/p3.html", log[-1].started_at - 0.02, 0.1))
    found = kinds(log)
    assert "overlap_host" in found
    assert "overlap_address" in found
    assert kinds(log, Promise(delay_s_min=0, factor=0, per_host=0, per_address=0)) == []


def test_two_hosts_of_one_address() -> None:
    other = host_of("", beside=PLAIN)
    slow = Promise(delay_s_min=1.0, factor=0, address_delay_s=0.2)
    robots_of_other = entry(other, "/robots.txt", 100.11)
    assert kinds([*visit(PLAIN, PATHS), robots_of_other], slow) == ["gap_address"]
    during = entry(other, "/robots.txt", 100.0, 0.1)
    assert kinds([*visit(PLAIN, PATHS, fetch_s=0.1), during], slow) == ["overlap_address"]
    assert kinds([*visit(PLAIN, PATHS), entry(other, "/robots.txt", 100.3)], slow) == []


def test_pages_that_robots_txt_denies() -> None:
    host = host_of("robots_part")
    assert kinds(visit(host, ["/private/", "/papers/report.pdf"])) == ["robots_denied"]
    named = host_of("robots_named")
    assert kinds(visit(named, ["/"])) == []
    assert kinds(visit(named, ["/"]), agent="other") == ["robots_denied"]


def test_pages_before_robots_txt() -> None:
    _, *rest = visit(PLAIN, PATHS)
    assert kinds(rest) == ["before_robots"] * 3
    late = entry(PLAIN, "/robots.txt", 110.0)
    assert kinds([*rest, late]) == ["before_robots"] * 3
    host = host_of("robots_500_first")
    failed = [entry(host, "/robots.txt", 100.0, status=500), entry(host, "/robots.txt", 102.0, status=500)]
    page = entry(host, "/", 104.0)
    assert kinds([*failed, page]) == ["before_robots"]
    assert kinds([*failed, entry(host, "/robots.txt", 104.0), entry(host, "/", 106.0)]) == []


def test_robots_txt_that_lies_elsewhere() -> None:
    host = host_of("robots_redirect_host")
    shared = entry(WEB.hosts[0], "/robots-shared.txt", 105.0)
    assert kinds(visit(host, ["/"])) == ["before_robots"]
    assert kinds([entry(host, "/robots.txt", 100.0), shared, entry(host, "/", 106.0)]) == []


def test_pages_fetched_twice() -> None:
    log = visit(PLAIN, [*PATHS, "/"])
    (violation,) = judge(log, PROMISE, WEB)
    assert (violation.kind, violation.path, violation.actual_s) == ("repeated", "/", 2)
    assert repeats(log, WEB) == {WEB.front(PLAIN): 2}


def test_pages_that_must_be_asked_for_again_are_no_repetition() -> None:
    host = next(
        host for host in WEB.hosts if "errors" in host.behaviors and host.robots in ("robots_404", "robots_allow")
    )
    assert kinds(visit(host, ["/errors/500-once", "/errors/500-once", "/errors/500", "/errors/500"])) == []


def test_crawl_delay() -> None:
    host = host_of("robots_crawl_delay")
    assert kinds(visit(host, PATHS)) == ["crawl_delay"] * 3
    assert kinds(visit(host, PATHS, gap_s=2.001)) == []
    assert kinds(visit(host, PATHS), Promise(use_crawl_delay=False)) == []
    assert kinds(visit(host, PATHS), Promise(crawl_delay_s_max=1.0)) == []


def test_retry_after() -> None:
    log = visit(PLAIN, ["/", "/about/p1.html"])
    log[1] = entry(PLAIN, "/", log[1].started_at, retry_at=log[1].ended_at + 5)
    assert kinds(log) == ["retry_after"]


@pytest.mark.parametrize("connection", [1, 2])
def test_retry_after_among_several_requests_at_once(connection: int) -> None:
    """What began before the answer was known is right; what begins afterwards is not. The second answer that was read
    on one connection, which may be the same, proves that it was known.
    """
    own = Promise(delay_s_min=0, factor=0, delay_s_max=0, per_host=8, per_address=0)
    robots = entry(PLAIN, "/robots.txt", 100.0)
    asking = entry(PLAIN, "/", 101.0, nth=2, retry_at=106.01)
    others = [
        entry(PLAIN, f"/about/p{k}.html", 101.05 + 0.1 * k, connection=connection, nth=k + 3)
        for k in range(2 if connection == 1 else 3)
    ]
    new = entry(PLAIN, "/people/p2.html", 103.0, connection=3)
    late = entry(PLAIN, "/work/p3.html", 106.02, connection=3, nth=2)
    assert kinds([robots, asking, *others[:-1], new, late], own) == []
    assert kinds([robots, asking, *others, late], own) == ["retry_after"]
    assert kinds([robots, asking, *others, new, late], own) == ["retry_after"] * 2


def test_unknown_hosts_and_wrong_addresses() -> None:
    assert kinds([entry(PLAIN, "/", 100.0, host="nobody.test")]) == ["unknown_host"]
    _, *rest = visit(PLAIN, PATHS)
    assert kinds([entry(PLAIN, "/robots.txt", 100.0, address="127.99.0.1"), *rest]) == ["wrong_address"]


def test_an_aborted_request_ended_before_the_server_noticed() -> None:
    log = visit(PLAIN, PATHS)
    log[1] = entry(PLAIN, "/", log[1].started_at, 0.04, whole=False, status=0)
    assert kinds(log) == []


def test_rates_of_a_crawl_at_its_limit_and_of_a_lazy_one() -> None:
    paths = [WEB.url(PLAIN, k).partition(":8480")[2] for k in range(1, 9)]
    brisk = rates(visit(PLAIN, ["/", *paths]), PROMISE, WEB)[PLAIN.name]
    assert brisk.requests == 10
    assert brisk.utilisation == pytest.approx(1, abs=0.01)
    lazy = rates(visit(PLAIN, ["/", *paths], gap_s=3.0), PROMISE, WEB)[PLAIN.name]
    assert lazy.utilisation == pytest.approx(1 / 3, abs=0.02)
    assert lazy.permitted / lazy.backlog_s == pytest.approx(1, abs=0.02)


def test_time_without_a_backlog_is_not_idle() -> None:
    target = WEB.url(PLAIN, PLAIN.pages - 1)
    path = target.partition(":8480")[2]
    linking = next(
        (host, WEB.url(host, number).partition(":8480")[2])
        for host in WEB.hosts
        for number in range(host.pages)
        if host.address != PLAIN.address
        and any(mark.url == target for mark in WEB.describe(host, WEB.url(host, number).partition(":8480")[2]).marks)
    )
    robots, late = entry(PLAIN, "/robots.txt", 100.0), entry(PLAIN, path, 150.0)
    assert rates([robots, late], PROMISE, WEB)[PLAIN.name].idle_s == pytest.approx(150 - 101.01)
    # A page elsewhere named it at last, four seconds before it was fetched.
    named = rates([robots, entry(*linking, 146.0, 0.0), late], PROMISE, WEB)[PLAIN.name]
    assert (named.backlog_s, named.idle_s) == (pytest.approx(4), pytest.approx(4))


def test_waiting_for_the_address_is_not_idle() -> None:
    other = host_of("", beside=PLAIN)
    path = "/about/p1.html"
    robots, front, _ = visit(PLAIN, ["/", path])
    late = entry(PLAIN, path, front.ended_at + 11.2)
    between = entry(other, "/robots.txt", front.ended_at + 1.0, 10.0)
    assert rates([robots, front, late], PROMISE, WEB)[PLAIN.name].idle_s == pytest.approx(10.2, abs=0.01)
    assert rates([robots, front, between, late], PROMISE, WEB)[PLAIN.name].idle_s == pytest.approx(0, abs=0.01)
