"""What headers and markup state about the use of a page, with the examples of the drafts (versions: `tests/model`)."""

import sys
from types import FrameType

import pytest

from gossamer.model import usage
from gossamer.model.usage import resolve
from gossamer.stages.process import usage as reading
from gossamer.stages.process.options import ProcessOptions

from .pages import SCAN, TREE, findings

READERS = pytest.mark.parametrize("options", [TREE, SCAN], ids=["tree", "scan"])
AI = {"ai-train": "refused", "ai-input": "refused"}
ALL = dict.fromkeys(usage.PURPOSES, "allowed")
BOTH = {"search": "refused", "ai-train": "refused"}
RFC_850 = "Friday, 25-Jun-10 15:00:00 GMT"
SHARED = {"search": "allowed", "archive": "allowed"}
NOW = 1_800_000_000.0


def answers(body: str = "<p>x", now: float = NOW, options: ProcessOptions = TREE, **more: object) -> dict[str, str]:
    found = findings(body, options, **more)
    resolved = resolve(found.statements, now)
    return {purpose: one.value for purpose, one in resolved.items() if one.by is not None}


def headed(*headers: tuple[str, str], **more: object) -> dict[str, str]:
    return answers("Hello", headers=headers, **{"media_type": "text/plain", **more})  # type: ignore[arg-type]


@READERS
@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("<meta name=robots content=noai>", AI),
        ("<meta name=robots content='NOAI, noimageai'>", AI),
        ("<meta name=robots content=noimageai>", {}),
        ("<meta name=robots content=noindex>", {"search": "refused"}),
        ("<meta name=robots content=none>", {"search": "refused"}),
        ("<meta name=robots content=noarchive>", {"archive": "refused"}),
        ("<meta name=robots content='nosnippet, noarchive'>", {"archive": "refused", "ai-input": "refused"}),
        ("<meta name=robots content='max-snippet:0'>", {"ai-input": "refused"}),
        ("<meta name=robots content='max-snippet: 20, index, follow'>", {}),
        ("<meta name=gossamer content=noai>", AI),
        ("<meta name=otherbot content=noai>", {}),
        ("<meta name='otherbot, Gossamer' content=noai>", AI),
        ("<meta name=' otherbot ,robots,' content='noai; noarchive'>", {**AI, "archive": "refused"}),
        ("<meta name='otherbot, gossamerish' content=noai>", {}),
        ("<meta name=', ,' content=noai>", {}),
        ("<meta name=robots content='unavailable_after: 2020-09-21; noai'>", {"search": "refused", **AI}),
        ("<meta name=robots content='unavailable_after: 2020-09-21'>", {"search": "refused"}),
        ("<meta name=robots content='unavailable_after: 2090-09-21'>", {}),
        (f"<meta name=robots content='unavailable_after: {RFC_850}, noai'>", {"search": "refused", **AI}),
        ("<meta name=robots content='unavailable_after: never'>", {}),
        # TDMRep, "TDM Metadata in HTML Content".
        ('<meta name="tdm-reservation" content="1"><meta name="tdm-policy" content="https://provider.com/p">', AI),
        ('<meta name="tdm-reservation" content="0">', {"ai-train": "allowed", "ai-input": "allowed"}),
        ('<meta name="tdm-reservation" content="yes">', {}),
        ("<link rel=license href=https://creativecommons.org/publicdomain/zero/1.0/>", ALL),
        ("<a rel='License nofollow' href=//creativecommons.org/licenses/by-sa/4.0/>x</a>", SHARED),
        ("<a rel=license href=/license>x</a>", {}),
        ("<link rel=license type=application/rsl+xml href=/license.xml>", {}),
        ("<!-- <meta name=robots content=noai> -->", {}),
        ("<p>license", {}),
    ],
)  # fmt: skip
def test_markup(body: str, expected: dict[str, str], options: ProcessOptions) -> None:
    assert answers(body, options=options) == expected


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ([("Content-Usage", "train-ai=n")], {"ai-train": "refused"}),  # draft-ietf-aipref-attach-05, section 1.2.
        ([("content-usage", "train-ai=n"), ("Content-Usage", "search=n")], BOTH),
        ([("Content-Usage", "train-ai=n"), ("Content-Usage", "train-ai=y")], {"ai-train": "allowed"}),
        ([("Content-Usage", "train-ai=\xff")], {}),
        ([("Content-Signal", "search=yes, ai-input=no")], {"search": "allowed", "ai-input": "refused"}),
        # TDMRep, "TDM Header Field in HTTP Responses".
        ([("tdm-reservation", "1")], AI),
        ([("tdm-reservation", "1"), ("tdm-policy", "https://provider.com/policies/policy.json")], AI),
        ([("X-Robots-Tag", "noai, noindex")], {**AI, "search": "refused"}),
        ([("X-Robots-Tag", "otherbot: noai")], {}),
        ([("X-Robots-Tag", "gossamer: noarchive")], {"archive": "refused"}),
        ([("X-Robots-Tag", "noindex; noarchive")], {"search": "refused", "archive": "refused"}),
        ([("X-Robots-Tag", "noindex noarchive")], {"search": "refused", "archive": "refused"}),
        ([("X-Robots-Tag", "otherbot: noindex noarchive")], {}),
        ([("X-Robots-Tag", "otherbot: noai; noarchive; gossamer: noindex")], {"search": "refused"}),
        ([("X-Robots-Tag", "otherbot: noai"), ("X-Robots-Tag", "noindex;")], {"search": "refused"}),
        ([("X-Robots-Tag", f"unavailable_after: {RFC_850}; noarchive")], {"search": "refused", "archive": "refused"}),
        ([("X-Robots-Tag", "unavailable_after: 25 Jun 2010 15:00:00 PST")], {"search": "refused"}),
        ([("Link", '<https://creativecommons.org/licenses/by/4.0/>; rel="license"')], ALL),
        ([("Link", '<https://creativecommons.org/licenses/by/4.0/>; rel="license"; anchor="/x"')], {}),
        ([("Link", '<https://example.com/rsl.xml>; rel="license"; type="application/rsl+xml"')], {}),
        ([("Link", "</style.css>; rel=preload")], {}),
    ],
)  # fmt: skip
def test_headers(headers: list[tuple[str, str]], expected: dict[str, str]) -> None:
    assert headed(*headers) == expected


@pytest.mark.parametrize("date", ["2010-06-25T15:00:00Z", "25 Jun 2010 15:00:00 GMT", RFC_850])
def test_a_page_is_available_until_the_second(date: str) -> None:
    for found in (
        findings(f"<meta name=robots content='unavailable_after: {date}'>", TREE),
        findings("x", TREE, headers=(("X-Robots-Tag", f"unavailable_after: {date}"),)),
    ):
        assert [one.since for one in found.statements] == [1_277_478_000.0]


def test_no_image_ai_is_about_images() -> None:
    assert headed(("X-Robots-Tag", "noimageai"), media_type="image/png") == AI
    assert headed(("X-Robots-Tag", "noimageai")) == {}


def test_statements_are_kept_as_written() -> None:
    body = (
        "<base href=/b/><meta name=Robots content='NoAI,  noarchive'>"
        "<link rel=license href=l.xml type=application/rsl+xml>"
    )
    found = findings(body, headers=(("Content-Usage", "train-ai=n;x"), ("tdm-policy", "https://provider.com/p")))
    assert [str(one) for one in found.statements] == [
        "header Content-Usage: train-ai=n;x",
        "header tdm-policy: https://provider.com/p",
        "meta robots: NoAI, noarchive",
        "link RSL: https://example.org/b/l.xml",
    ]


def test_markup_supersedes_headers() -> None:
    """TDMRep, "Processing priority"."""
    assert answers("<meta name=tdm-reservation content=0>", headers=(("tdm-reservation", "1"),)) == {
        "ai-train": "allowed",
        "ai-input": "allowed",
    }


def test_a_page_without_a_statement_costs_no_call_to_a_parser_of_statements() -> None:
    parsers = {reading.__file__: {"_headers", "_directives", "_words", "_tdm", "_license"}, usage.__file__: None}
    calls: list[str] = []

    def count(frame: FrameType, event: str, _: object) -> None:
        names = parsers.get(frame.f_code.co_filename, set())
        if event == "call" and (names is None or frame.f_code.co_name in names):
            calls.append(frame.f_code.co_name)

    def look(body: str, *headers: tuple[str, str]) -> int:
        calls.clear()
        sys.setprofile(count)
        try:
            findings(body, headers=headers)
        finally:
            sys.setprofile(None)
        return len(calls)

    plain = "<title>x</title><meta name=description content=x><link rel=stylesheet href=/s>" + "<a href=/x>x</a>" * 50
    assert look(plain, ("Content-Type", "text/html"), ("Server", "nginx"), ("Cache-Control", "no-store")) == 0
    assert look(plain + "<meta name=robots content=noai>") > 0
    assert look(plain, ("Content-Usage", "train-ai=n")) > 0
