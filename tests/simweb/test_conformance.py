"""The table of behaviours: it judges any crawler by the log, and finds what is wrong."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from gossamer.lab.simweb.__main__ import main
from gossamer.lab.simweb.behaviors import BEHAVIORS
from gossamer.lab.simweb.conformance import Row, conformance, showcase, table
from gossamer.lab.simweb.log import Logged, RequestLog
from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.truth import Truth, TruthWalk
from gossamer.lab.simweb.web import Web

OPTIONS = SimwebOptions(
    seed=3, hosts=12, pages=60, port=8480,
    behaviours=("robots_part", "redirects", "copies", "spellings", "compressed", "trap_depth"),
)  # fmt: skip
WEB = Web(OPTIONS)
WALKED = Truth(WEB).walk(WEB.seeds)


def requests(walked: TruthWalk = WALKED) -> list[Logged]:
    """Return what a right crawl asks for."""
    urls = [url for url, page in walked.pages.items() if page.outcome not in ("robots_denied", "dns_error")]
    return [asked(url) for url in urls] + [asked(web_front + "robots.txt") for web_front in WEB.fronts]


def asked(url: str) -> Logged:
    name, _, path = url.removeprefix("http://").partition("/")
    return Logged(1.0, 1.0, 1.0, "127.16.0.1", name.partition(":")[0], "/" + path, 200, 1, 1, 9, True, 0.0, "GET", "x")


def rows(log: list[Logged], outcomes: dict[str, str] | None = None) -> dict[str, Row]:
    return {row.behaviour: row for row in conformance(WEB, WALKED, log, outcomes)}


def wrong(log: list[Logged], outcomes: dict[str, str] | None = None) -> dict[str, str]:
    return {name: row.seen for name, row in rows(log, outcomes).items() if not row.right}


def test_a_right_crawl_is_right_in_every_row() -> None:
    shown = rows(requests(), {url: page.outcome for url, page in WALKED.pages.items()})
    assert all(row.right for row in shown.values())
    assert {"robots_part", "redirects", "copies", "spellings", "compressed", "trap_depth"} <= shown.keys()
    assert all(int(row.seen.split()[0]) > 0 for row in shown.values())


def a_url(part: str, outcome: str = "fetched") -> str:
    return next(url for url, page in sorted(WALKED.pages.items()) if part in url and page.outcome == outcome)


def test_each_fault_is_found_where_it_belongs() -> None:
    right = requests()
    missing = [one for one in right if not one.path.startswith("/copies/one")]
    assert list(wrong(missing)) == ["copies"]
    assert list(wrong([*right, asked(a_url("/spellings/page"))])) == ["spellings"]
    assert "asked for 1 times" in wrong([*right, asked(a_url("/private/", "robots_denied"))])["robots_part"]
    host = next(host for host in WEB.hosts if "redirects" in host.behaviors and host.mirror_of < 0)
    assert "which nothing names" in wrong([*right, asked(f"{WEB.front(host)}redirects/bait")])["redirects"]
    trapped = next(host for host in WEB.hosts if "trap_depth" in host.behaviors)
    endless = [asked(f"{WEB.front(trapped)}trap_depth/x/{'about/' * n}") for n in range(800)]
    assert "800 endless ones; 1 wrong: too many" in wrong([*right, *endless])["trap_depth"]


def test_outcomes_are_compared_where_there_are_any() -> None:
    outcomes = {url: page.outcome for url, page in WALKED.pages.items()}
    assert "is timeout, not fetched" in wrong(requests(), outcomes | {a_url("/copies/two"): "timeout"})["copies"]
    del outcomes[a_url("/copies/two")]
    assert "has no outcome" in wrong(requests(), outcomes)["copies"]


def test_a_spelling_of_its_own_choice_is_no_fault() -> None:
    log = [
        msgspec.structs.replace(one, path=one.path.replace("~", "%7E")) if "spellings/page" in one.path else one
        for one in requests()
    ]
    assert wrong(log) == {}


def test_the_showcase_shows_everything_where_it_can_be_seen() -> None:
    web = Web(showcase(port=8480))
    shown = conformance(web, Truth(web).walk(web.seeds), [])
    assert [row.behaviour for row in shown] == [each.name for each in BEHAVIORS]
    nothing = {row.behaviour for row in shown if row.right}
    assert nothing == {"robots_deny_all", "robots_500", "robots_stall"}, "a crawl that does nothing is found out"


def test_a_log_is_judged_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = RequestLog(tmp_path / "log")
    for one in requests():
        log.add(one)
    log.close()
    command = ["--options", msgspec.json.encode(OPTIONS).decode(), "--judge", str(tmp_path / "log")]
    assert main(command) == 0
    assert capsys.readouterr().out.startswith("behaviour")
    log = RequestLog(tmp_path / "log")
    log.add(asked(a_url("/copies/one")))
    log.close()
    assert main(command) == 1
    assert "WRONG" in capsys.readouterr().out


def test_the_table_has_columns() -> None:
    text = table([Row("a", "much", "little", False), Row("longer", "x", "y", True)])
    assert text.splitlines()[1].split() == ["a", "much", "little", "WRONG"]
    assert len({line.index(word) for line, word in zip(text.splitlines(), ("expected", "much", "x"), strict=True)}) == 1
