"""Forms: a check as CSV, JSON, a summary in Markdown, JUnit XML and SARIF."""

import csv
import hashlib
import io
import json
from collections.abc import Iterator
from urllib.parse import quote
from xml.sax.saxutils import escape, quoteattr

from gossamer.model.product import PRODUCT, __version__
from gossamer.model.words import counted
from gossamer.results.check.causes import OF_LINKS, Cause, causes_of, summary
from gossamer.results.check.comparison import SiteCheck, name_of
from gossamer.results.export.faults import KINDS, SEVERITIES, Severity, SiteFault
from gossamer.results.report.text import printable

COLUMNS = ("fault", "url", "detail", "pages", "severity", "cause", "state")
"""Columns of a fault: the last are its severity, its cause (shared with others), and whether it is new."""
SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
RESULTS_MAX = 25_000
"""Results of one run that GitHub takes."""
CAUSES_MAX = 50
"""Causes in the summary."""
URL_CHARACTERS_MAX = 200
_LEVELS = {"error": "error", "warning": "warning", "notice": "note", "": "none"}


def as_csv(check: SiteCheck) -> str:
    """Return one record a fault (RFC 4180); pages are each on a line of their field."""
    out = io.StringIO(newline="")
    rows = csv.writer(out)
    rows.writerow(COLUMNS)
    rows.writerows([*one[:3], "\n".join(one[3]), *one[4:]] for one in _records(check))
    return out.getvalue()


def as_json(check: SiteCheck) -> str:
    """Return the whole check as one JSON object; the fields of faults are the columns of the CSV file."""
    value = {
        "site": check.site,
        **{f"{one}s": check.counts()[one] for one in SEVERITIES},
        "faults": [dict(zip(COLUMNS, one, strict=True)) for one in _records(check)],
        "gone": [{"fault": one.kind, "url": one.what} for one in check.gone()],
    }
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def _records(check: SiteCheck) -> Iterator[tuple[str, str, str, list[str], str, str, str]]:
    """Yield what `COLUMNS` names of each fault."""
    causes = {id(fault): str(cause) for cause in causes_of(check.faults) for fault in cause.faults}
    for one in check.faults:
        yield one.kind, one.url, one.detail, one.pages, one.severity, causes[id(one)], check.state(one)


def as_markdown(check: SiteCheck) -> str:
    """Return a summary for `GITHUB_STEP_SUMMARY`: the causes, those of most faults first within each severity."""
    lines = [f"## Check of {_cell(check.site)}", "", f"**{summary(check.counts())}**"]
    if check.earlier is not None:
        new = sum(check.state(one) == "new" for one in check.counting())
        lines[-1] += f" ({new:,} new, {len(check.gone()):,} gone since the last check)"
    causes = causes_of(check.counting())
    if causes:
        lines += ["", "| Severity | Fault | Cause | Faults |", "| --- | --- | --- | --: |"]
        lines += [_markdown_row(one) for one in causes[:CAUSES_MAX]]
    if len(causes) > CAUSES_MAX:
        lines += ["", f"{counted(len(causes) - CAUSES_MAX, 'more cause')}: see the other files of the check."]
    return "\n".join(lines) + "\n"


def _markdown_row(cause: Cause) -> str:
    kind = KINDS[cause.kind]
    return f"| {kind.severity} | {_cell(kind.heading)} | {_cell(str(cause))} | {len(cause.faults):,} |"


def _cell(text: str) -> str:
    """Return text that Markdown shows as it is, on one line."""
    shown = printable(text[: 2 * URL_CHARACTERS_MAX])
    return "".join(f"\\{one}" if one in "\\`*_{}[]<>#|~!@" else one for one in shown)


def as_junit(check: SiteCheck, least: Severity) -> str:
    """Return a suite of tests for each kind of fault: failed, skipped where the check allows it, or passed."""
    failing = {id(one) for one in check.failing(least)}
    suites = []
    for kind, rule in KINDS.items():
        faults = [one for one in check.faults if one.kind == kind]
        failures = sum(id(one) in failing for one in faults)
        tests = "".join(_test_case(one, is_failure=id(one) in failing) for one in faults)
        tests = tests or f"<testcase classname={_attribute(kind)} name={_attribute(rule.heading)}/>\n"
        suites.append(
            f'<testsuite name={_attribute(rule.heading)} tests="{max(1, len(faults))}" failures="{failures}" '
            f'errors="0" skipped="{len(faults) - failures}">\n{tests}</testsuite>\n'
        )
    whole = f'tests="{sum(suite.count("<testcase ") for suite in suites)}" errors="0" failures="{len(failing)}"'
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f"<testsuites name={_attribute(f'{PRODUCT} check {check.site}')} {whole}>\n{''.join(suites)}</testsuites>\n"
    )


def _test_case(fault: SiteFault, *, is_failure: bool) -> str:
    element = "failure" if is_failure else "skipped"
    message = _attribute(fault.detail or KINDS[fault.kind].heading)
    pages = escape("".join(f"{printable(page)}\n" for page in fault.pages))
    name = f"classname={_attribute(fault.kind)} name={_attribute(fault.url)}"
    return f"<testcase {name}><{element} message={message}>{pages}</{element}></testcase>\n"


def _attribute(text: str) -> str:
    return quoteattr(printable(text))


def as_sarif(check: SiteCheck) -> str:
    """Return a SARIF 2.1.0 log with one run: a result for each fault, at the first page to mend."""
    driver = {
        "name": PRODUCT,
        "version": __version__,
        "rules": [
            {
                "id": kind,
                **{part: {"text": rule.heading} for part in ("shortDescription", "fullDescription")},
                "help": {"text": rule.advice},
                "defaultConfiguration": {"level": _LEVELS[rule.severity]},
            }
            for kind, rule in KINDS.items()
        ],
    }
    results = [one for _, one in zip(range(RESULTS_MAX), _results(check), strict=False)]
    log = {"$schema": SCHEMA, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}
    return json.dumps(log, indent=1, ensure_ascii=False) + "\n"


def _results(check: SiteCheck) -> Iterator[dict[str, object]]:
    for fault in check.faults:
        place = fault.pages[0] if fault.pages and fault.kind in OF_LINKS else fault.url
        # GitHub refuses whole files with an https address, takes relative paths, and needs a line.
        path = quote(place.partition("://")[2].rstrip("/") or place, "/%~,;=&+$!*'()@")
        name = name_of(fault.kind, fault.url, fault.detail)
        text = f"{KINDS[fault.kind].heading}: {fault.url}{f' ({fault.detail})' if fault.detail else ''}"
        result: dict[str, object] = {
            "ruleId": fault.kind,
            "level": _LEVELS[fault.severity],
            "message": {"text": text},
            "locations": [{"physicalLocation": {"artifactLocation": {"uri": path}, "region": {"startLine": 1}}}],
            "partialFingerprints": {"primaryLocationLineHash": hashlib.sha256("\n".join(name).encode()).hexdigest()},
        }
        state = check.state(fault)
        if check.earlier is not None:
            result["baselineState"] = "new" if state == "new" else "unchanged"
        if state == "accepted":
            result["suppressions"] = [{"kind": "external"}]
        yield result
