"""Forms: what other tools read of a check."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from markdown_it import MarkdownIt

from gossamer.cli.faults import lines_of
from gossamer.model.errors import ConfigError
from gossamer.results.check.comparison import FaultName, SiteCheck, names_of, read_baseline
from gossamer.results.check.forms import CAUSES_MAX, as_csv, as_json, as_junit, as_markdown, as_sarif
from gossamer.results.check.page import ROWS_ALL_MAX, ROWS_MAX, as_html
from gossamer.results.export.faults import KINDS, SiteFault
from tests.results.report.test_html import Read

ROOT = "https://example.org/"
LEVELS = ("error", "warning", "note", "none")
HOSTILE = "<script>alert(1)</script>|`\"'&\x1b[2J\u202e\n</failure>]]>"
FAULTS = [
    SiteFault("broken_link", f"{ROOT}gone", "HTTP 404", [ROOT, f"{ROOT}a"]),
    SiteFault("duplicate_title", f"{ROOT}a", "Same", [f"{ROOT}b"]),
    SiteFault("missing_h1", f"{ROOT}a"),
    SiteFault("long_title", f"{ROOT}a", "61 characters"),
    SiteFault("not_checked", "https://other.example/", "HTTP 429", [ROOT]),
]
CHECK = SiteCheck(ROOT, FAULTS)
HOSTILE_CHECK = SiteCheck(HOSTILE, [SiteFault("broken_link", f"{ROOT}{HOSTILE}", HOSTILE, [HOSTILE, ROOT])])


def test_the_csv_file_keeps_its_columns_and_is_a_baseline(tmp_path: Path) -> None:
    rows = list(csv.reader(io.StringIO(as_csv(CHECK), newline="")))
    assert rows[0] == ["fault", "url", "detail", "pages", "severity", "cause", "state"]
    assert rows[1][:5] == ["broken_link", f"{ROOT}gone", "HTTP 404", f"{ROOT}\n{ROOT}a", "error"]
    (tmp_path / "f.csv").write_text(as_csv(CHECK), newline="")
    assert read_baseline(tmp_path / "f.csv") == names_of(FAULTS)
    assert not SiteCheck(ROOT, FAULTS, accepted=names_of(FAULTS)).counting()


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"", b"a,b\n", b"fault\n"])
def test_a_baseline_that_is_none_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "f.csv").write_bytes(content)
    with pytest.raises(ConfigError, match=r"--baseline .*f\.csv"):
        read_baseline(tmp_path / "f.csv")


@pytest.mark.parametrize(("mark", "delimiter"), [("\ufeff", ","), ("\ufeff", ";"), ("", ";")])
def test_a_baseline_that_a_spreadsheet_saved_is_read(tmp_path: Path, mark: str, delimiter: str) -> None:
    out = io.StringIO(newline="")
    csv.writer(out, delimiter=delimiter).writerows(csv.reader(io.StringIO(as_csv(CHECK), newline="")))
    (tmp_path / "f.csv").write_text(mark + out.getvalue(), newline="", encoding="utf-8")
    assert read_baseline(tmp_path / "f.csv") == names_of(FAULTS)


def test_a_baseline_says_which_of_its_faults_are_gone() -> None:
    accepted = names_of([*FAULTS[:2], SiteFault("broken_link", f"{ROOT}mended")])
    lines = lines_of(SiteCheck(ROOT, FAULTS, accepted=accepted), Path("f.csv"), "error")
    assert "Accepted by the baseline: 2; 1 of its faults are gone" in lines


def test_a_short_row_of_a_baseline_does_no_harm(tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_text("fault,url,detail\nbroken_link\n")
    assert read_baseline(tmp_path / "f.csv") == {FaultName("broken_link", "")}


def test_only_counting_faults_fail_a_check() -> None:
    assert [len(CHECK.failing(level)) for level in ("error", "warning", "notice")] == [2, 3, 4]  # type: ignore[arg-type]
    check = SiteCheck(ROOT, FAULTS, accepted=names_of(FAULTS[:1]))
    assert [one.kind for one in check.failing("error")] == ["duplicate_title"]


def test_shared_titles_are_the_same_fault_when_their_pages_change() -> None:
    earlier = names_of([SiteFault("duplicate_title", f"{ROOT}0", "Same", [f"{ROOT}a"])])
    check = SiteCheck(ROOT, FAULTS, earlier)
    assert [check.state(one) for one in FAULTS] == ["new", "known", "new", "new", "new"]
    assert check.gone() == []


def test_junit_fails_what_fails_the_check_and_skips_the_rest() -> None:
    suites = ET.fromstring(as_junit(CHECK, "error"))
    cases = list(suites.iter("testcase"))
    assert (int(suites.get("tests", "")), suites.get("failures")) == (len(cases), "2")
    assert sum(int(suite.get("tests", "")) for suite in suites) == len(cases) > len(FAULTS)
    suite = next(one for one in suites if one.get("name") == "Broken links")
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("1", "1", "0")
    assert {one.get("errors") for one in suites} == {"0"}, "a schema of Jenkins requires it"
    assert len(list(suites.iter("skipped"))) == 3
    passing = next(one for one in suites if one.get("name") == "Redirect loops")
    assert (len(passing), len(passing[0])) == (1, 0)


def test_sarif_has_a_rule_and_a_place_for_each_result() -> None:
    log = json.loads(as_sarif(SiteCheck(ROOT, FAULTS, names_of(FAULTS[1:]), names_of(FAULTS[2:3]))))
    run = log["runs"][0]
    rules = [one["id"] for one in run["tool"]["driver"]["rules"]]
    assert {one["ruleId"] for one in run["results"]} <= set(rules)
    assert [one["level"] for one in run["results"]] == ["error", "error", "warning", "note", "none"]
    assert [one["baselineState"] for one in run["results"]] == [
        "new",
        "unchanged",
        "unchanged",
        "unchanged",
        "unchanged",
    ]
    assert [bool(one.get("suppressions")) for one in run["results"]] == [False, False, True, False, False]
    assert {one["defaultConfiguration"]["level"] for one in run["tool"]["driver"]["rules"]} <= {*LEVELS}


@pytest.mark.parametrize(
    ("page", "path"),
    [
        (f"{ROOT}guide/a.html", "example.org/guide/a.html"),
        (ROOT, "example.org"),
        ("http://127.0.0.1:8000/a", "127.0.0.1%3A8000/a"),
        (f"{ROOT}日本?x=1#y", "example.org/%E6%97%A5%E6%9C%AC%3Fx=1%23y"),
        (f"{ROOT}a%20b", "example.org/a%20b"),
        ("http//", "http//"),
    ],
)
def test_a_place_in_sarif_is_a_relative_path_with_a_line(page: str, path: str) -> None:
    """GitHub refuses whole files with an https address (github/codeql-action#754, jentic/jentic-api-scorecard#208)."""
    log = json.loads(as_sarif(SiteCheck(ROOT, [SiteFault("missing_h1", page)])))
    [result] = log["runs"][0]["results"]
    assert result["locations"] == [
        {"physicalLocation": {"artifactLocation": {"uri": path}, "region": {"startLine": 1}}}
    ]


def test_the_fingerprint_of_shared_titles_stays_when_their_pages_change() -> None:
    faults = [SiteFault("duplicate_title", f"{ROOT}{name}", "Same") for name in "ab"]
    results = json.loads(as_sarif(SiteCheck(ROOT, faults)))["runs"][0]["results"]
    assert len({one["partialFingerprints"]["primaryLocationLineHash"] for one in results}) == 1


def test_markdown_is_one_table_that_the_content_cannot_leave() -> None:
    shown = MarkdownIt().enable("table").render(as_markdown(HOSTILE_CHECK))
    assert shown.count("<tr>") == 2
    assert "<script" not in shown
    many = SiteCheck(ROOT, [SiteFault("missing_title", f"{ROOT}{n}/x") for n in range(CAUSES_MAX + 1)])
    assert as_markdown(many).endswith("\n1 more cause: see the other files of the check.\n")
    assert as_markdown(SiteCheck(ROOT, [])) == f"## Check of {ROOT}\n\n**0 errors, 0 warnings, 0 notices**\n"


def test_json_has_numbers_faults_and_what_is_gone() -> None:
    value = json.loads(as_json(SiteCheck(ROOT, FAULTS, frozenset((FaultName("broken_link", f"{ROOT}old"),)))))
    assert (value["errors"], value["warnings"], value["notices"]) == (2, 1, 1)
    assert value["faults"][0]["pages"] == [ROOT, f"{ROOT}a"]
    assert value["gone"] == [{"fault": "broken_link", "url": f"{ROOT}old"}]


def test_what_strangers_wrote_is_text_everywhere() -> None:
    read = Read(as_html(HOSTILE_CHECK))
    assert not read.open
    assert read.tags.count("script") == 1
    assert not [name for name, _ in read.attributes if name.startswith("on")]
    assert all(value.startswith(("#", "https://")) for name, value in read.attributes if name == "href")
    assert ET.fromstring(as_junit(HOSTILE_CHECK, "error")).get("failures") == "1"
    assert json.loads(as_sarif(HOSTILE_CHECK))["runs"][0]["results"][0]["ruleId"] == "broken_link"
    assert json.loads(as_json(HOSTILE_CHECK))["errors"] == 1


def test_the_page_has_contents_causes_kinds_pages_and_what_is_gone() -> None:
    text = as_html(SiteCheck(ROOT, FAULTS, frozenset((FaultName("a_former_kind", f"{ROOT}old"),))))
    read = Read(text)
    places = [value for name, value in read.attributes if name == "id"]
    assert places == ["causes", *(one.kind for one in FAULTS), "pages", "gone"]
    assert {value[1:] for name, value in read.attributes if name == "href" and value[0] == "#"} == set(places)
    assert "<h2>Broken links: 1</h2>" in text
    assert text.count("<span class=new>new</span>") == len(FAULTS)
    assert 'href="https://example.org/gone"' in text


def test_the_page_is_bounded_and_says_what_it_leaves_out() -> None:
    faults = [SiteFault("missing_title", f"{ROOT}{number}") for number in range(ROWS_MAX + 7)]
    text = as_html(SiteCheck(ROOT, faults))
    assert "… and 7 more, which the CSV and JSON files list." in text
    assert "No faults were found." in as_html(SiteCheck(ROOT, []))


def test_a_page_of_very_many_faults_stays_small_enough_for_a_phone() -> None:
    pages = [f"{ROOT}{number}/{'p' * 40}" for number in range(30)]
    faults = [SiteFault(kind, f"{ROOT}{kind}/{number}", "detail", pages) for kind in KINDS for number in range(60)]
    text = as_html(SiteCheck(ROOT, faults))
    assert ROWS_ALL_MAX / 2 < text.count("<tr>") <= ROWS_ALL_MAX + 2 * ROWS_MAX + len(KINDS) + 3
    assert len(text) < 8_000_000
    assert all(f"<section class=wide id={kind}>" in text for kind in KINDS)


def test_a_table_has_no_column_without_values() -> None:
    text = as_html(SiteCheck(ROOT, [SiteFault("missing_h1", f"{ROOT}a"), SiteFault("long_title", ROOT, "61")]))
    heads = [part.count("<th ") for part in text.split("<section")[1:]]
    assert heads[-3:] == [1, 2, 4], "of missing_h1: URL; of long_title: detail too; of pages: all"
    assert text.count('data-name="Detail"') == 1
    assert 'data-name="Pages"' not in text


def test_a_table_of_one_row_has_nothing_to_sort() -> None:
    assert "<table data-sort" not in as_html(SiteCheck(ROOT, [SiteFault("missing_title", ROOT)]))
    both = [SiteFault("missing_title", f"{ROOT}{number}") for number in range(2)]
    assert as_html(SiteCheck(ROOT, both)).count("<table data-sort") > 1


def test_the_page_has_the_time_of_the_check() -> None:
    assert ", 0 notices. Checked 2026-11-30 03:45:09 UTC.</p>" in as_html(SiteCheck(ROOT, FAULTS[:1], at=1796010309.5))
    assert "No faults were found. Checked 2026-11-30" in as_html(SiteCheck(ROOT, [], at=1796010309.5))
    assert "Checked" not in as_html(CHECK)
