"""What robots.txt, tdmrep.json and RSL documents state about the use of pages, with the examples of their drafts.

AIPREF attachment: draft-ietf-aipref-attach-05, editors' copy of 2026-08-19 (ietf-wg-aipref/drafts 7ca0afc).
TDMRep: final report of the W3C community group (w3c/tdm-reservation-protocol 1a547b5). RSL: 1.0 of 2025-12-10.
Files of crawler-commons: 2026-07-27 (8e14e27).
"""

import pytest

from gossamer.model.usage import Statement
from gossamer.stages.robots.documents import license_rules, tdm_rules
from gossamer.stages.robots.patterns import WILDCARDS_MAX, Pattern, target_of
from gossamer.stages.robots.rules import STATEMENTS_MAX, RobotsRules

ORIGIN = "https://example.org"


def stated(text: str, path: str, token: str = "gossamer") -> list[str]:
    return [str(one) for one in RobotsRules.parse(text.encode(), token).statements(path)]


def refused(text: str, path: str = "/", token: str = "gossamer") -> set[str]:
    return {purpose for one in RobotsRules.parse(text.encode(), token).statements(path) for purpose in one.refuses}


ATTACH = """\
User-Agent: *
Allow: /
Disallow: /never/
Content-Usage: train-ai=n
Content-Usage: /ai-ok/ train-ai=y

User-Agent: ExampleBot
Allow: /
Content-Usage: train-ai=y
"""


@pytest.mark.parametrize(
    ("path", "token", "usage"),
    [
        ("/test", "gossamer", "train-ai=n"),
        ("/ai-ok/test", "gossamer", "/ai-ok/ train-ai=y"),
        ("/test", "ExampleBot", "train-ai=y"),
        ("/ai-ok/test", "ExampleBot", "train-ai=y"),
        ("/never/test", "ExampleBot", "train-ai=y"),
    ],
)
def test_the_example_of_the_attachment_draft(path: str, token: str, usage: str) -> None:
    assert stated(ATTACH, path, token) == [f"robots.txt Content-Usage: {usage}"]
    assert not RobotsRules.parse(ATTACH.encode()).allows("/never/test")


def test_the_first_example_of_the_attachment_draft() -> None:
    assert refused("User-Agent: *\nAllow: /\nContent-Usage: train-ai=n\n") == {"ai-train"}


@pytest.mark.parametrize(
    ("rule", "path", "is_refused"),
    [
        ("\t content-usage \t:\t /a \t train-ai=n", "/ab", True),  # White space around label and colon.
        ("Content-Usage: /a train-ai=n", "/b", False),
        ("Content-Usage: /a* train-ai=n", "/abc", True),
        ("Content-Usage: /*.pdf$ train-ai=n", "/x.pdf", True),
        ("Content-Usage: /*.pdf$ train-ai=n", "/x.pdf?y", False),
        ("Content-Usage: /a%20b train-ai=n", "/a%20b", True),
        ("Content-Usage: /%62 train-ai=n", "/b", True),
        ("Content-Usage: train-ai=n # as of today", "/", True),
        ("Content-Usage: /a", "/a", False),
        ("Content-Usage:", "/", False),
        ("Content-Usages: train-ai=n", "/", False),
    ],
)
def test_the_form_of_a_rule(rule: str, path: str, is_refused: bool) -> None:
    assert ("ai-train" in refused(f"User-agent: *\n{rule}\n", path)) == is_refused


def test_conflicting_rules_of_one_path_apply_separately() -> None:
    rules = "User-agent: *\nContent-Usage: /a train-ai=y\nContent-Usage: /a train-ai=n\nContent-Usage: search=n"
    assert len(stated(rules, "/a")) == 2
    assert refused(rules, "/a") == {"ai-train"}


def test_rules_of_all_groups_for_an_agent_count_together() -> None:
    rules = "User-agent: gossamer\nContent-Usage: /a train-ai=n\n\nUser-agent: x\nUser-agent: gossamer\nAllow: /"
    assert refused(rules, "/a") == {"ai-train"}


def test_a_statement_ends_no_group_of_rules() -> None:
    """Parsers that do not know the line read the group as if it were not there."""
    rules = RobotsRules.parse(b"User-agent: a\nContent-Usage: train-ai=n\nUser-agent: b\nDisallow: /x", "a")
    assert not rules.allows("/x")
    assert refused("User-agent: a\nContent-Usage: train-ai=n\nUser-agent: gossamer\nDisallow: /x") == set()


EXTENSIONS = """\
User-agent: *
Allow: /
LLM-Policy: /llms.txt
Sitemap: /sitemap.xml
Content-Signals: /content-signals.json

User-agent: mybot
Disallow: /private/
Comment: only crawl at night

User-agent: otherbot
Disallow: /admin/

Host: www.example.com
"""
MERGING = """\
Content-Signal: search=yes,ai-train=yes,ai-input=yes  # global scope, affects all user-agents

User-agent: *
Allow: /llms.txt

User-agent: mybot
Request-rate: 10/1m
User-agent: yourbot
Disallow: /private/

User-agent: *
Disallow: /
"""


@pytest.mark.parametrize("token", ["mybot", "yourbot", "anyotherbot"])
def test_files_of_crawler_commons(token: str) -> None:
    assert stated(MERGING, "/", token) == ["robots.txt Content-Signal: search=yes,ai-train=yes,ai-input=yes"]
    found = stated(EXTENSIONS, "/", token)
    assert "robots.txt LLM-Policy: /llms.txt" in found
    assert "robots.txt Content-Signal: /content-signals.json" in found
    assert refused(EXTENSIONS, "/", token) == set()
    two = "User-agent: *\nAllow: /\nLLM-Policy: /llms.txt\nLLM-Policy: /ai-policy.txt"
    assert [one.rpartition(" ")[2] for one in stated(two, "/", token)] == ["/llms.txt", "/ai-policy.txt"]


def test_content_signals_of_a_managed_file() -> None:
    managed = "User-agent: *\nContent-Signal: search=yes,ai-train=no,use=reference\nAllow: /\n\nUser-agent: CCBot\n"
    assert refused(managed + "Disallow: /") == {"ai-train"}
    # Our own group has none: the file's counts.
    assert refused(managed + "Disallow: /", token="CCBot") == {"ai-train"}
    assert refused(managed + "Content-Signal: ai-input=no", token="CCBot") == {"ai-input"}


def test_licenses_of_a_group_replace_those_of_the_file() -> None:
    """RSL 1.0, section 4.4: where the selected group has a License, global ones are ignored."""
    text = "License: https://a.test/all.xml\nUser-agent: gossamer\nLicense: https://a.test/ours.xml\n"
    assert RobotsRules.parse(text.encode()).licenses == ("https://a.test/ours.xml",)
    assert RobotsRules.parse(text.encode(), "other").licenses == ("https://a.test/all.xml", "https://a.test/ours.xml")
    example = "License: https://example.com/license.xml\n\nUser-agent: Googlebot\nAllow: /"
    assert stated(example, "/") == ["robots.txt License: https://example.com/license.xml"]


def test_a_file_without_statements_has_none_and_one_of_many_is_bounded() -> None:
    assert stated("User-agent: *\nDisallow: /x", "/") == []
    many = "User-agent: *\n" + "Content-Signal: ai-train=no\n" * 5_000
    assert len(stated(many, "/")) == STATEMENTS_MAX


def test_a_path_of_many_wildcards_is_cut_and_matches_more() -> None:
    line = "Content-Usage: /" + "a*" * 100 + "z train-ai=n"
    assert refused(f"User-agent: *\n{line}", "/" + "a" * WILDCARDS_MAX) == set()  # One more is needed.
    assert refused(f"User-agent: *\n{line}", "/" + "a" * (WILDCARDS_MAX + 1)) == {"ai-train"}
    assert refused(f"User-agent: *\n{line}", "/b") == set()


def test_a_file_in_utf_16_is_read_both_ways() -> None:
    text = "User-agent: *\nContent-Usage: train-ai=n".encode("utf-16")
    assert RobotsRules.parse(text).statements("/")[0].refuses == ("ai-train",)


# ---- tdmrep.json


def first(rules: list[tuple[Pattern, Statement]], path: str) -> Statement | None:
    return next((one for pattern, one in rules if pattern.matches(target_of(path))), None)


OPT_OUT = b'[{"location": "/", "tdm-reservation": 1}]'
GROUPS = b"""[
  {"location": "/directory-a/", "tdm-reservation": 1},
  {"location": "/directory-b/html/", "tdm-reservation": 1, "tdm-policy":"https://provider.com/policies/policy.json"},
  {"location": "/directory-b/images/*.jpg", "tdm-reservation": 0}
]"""


@pytest.mark.parametrize(
    ("text", "path", "reserved"),
    [
        (OPT_OUT, "/any/file", True),
        (GROUPS, "/directory-a/x.pdf", True),
        (GROUPS, "/directory-b/html/x.html", True),
        (GROUPS, "/directory-b/images/x.jpg", False),
        (GROUPS, "/directory-b/images/x.png", None),
        (GROUPS, "/", None),
        (b'[{"location": "/this/path/exactly$", "tdm-reservation": 1}]', "/this/path/exactly", True),
        (b'[{"location": "/this/path/exactly$", "tdm-reservation": 1}]', "/this/path/exactly/x", None),
        (b'[{"location": "/this/*/then", "tdm-reservation": 1}]', "/this/and/then", True),
        (b'[{"location": "/path/foo-%24", "tdm-reservation": 1}]', "/path/foo-$", True),
        (b'[{"location": "/x", "tdm-reservation": 2}]', "/x", None),
        (b'[{"location": "/x", "tdm-reservation": true}]', "/x", None),
        (b'[{"location": "/x"}, {"tdm-reservation": 1}, 5, null]', "/x", None),
        (b'{"location": "/", "tdm-reservation": 1}', "/", None),
        (b"<!doctype html><title>not found</title>", "/", None),
        (b"[" * 100_000, "/", None),
        (b"", "/", None),
    ],
)
def test_examples_of_the_tdm_file(text: bytes, path: str, reserved: bool | None) -> None:
    found = first(list(tdm_rules(text)), path)
    assert (None if found is None else bool(found.refuses)) == reserved


def test_a_policy_is_kept() -> None:
    found = first(list(tdm_rules(GROUPS)), "/directory-b/html/")
    assert found is not None
    assert found.text == "1 for /directory-b/html/, tdm-policy https://provider.com/policies/policy.json"


# ---- RSL


def rsl(content: str, url: str = "/", more: str = "") -> bytes:
    return f'<rsl xmlns="https://rslstandard.org/rsl"><content url="{url}"{more}>{content}</content></rsl>'.encode()


def use(kind: str, words: str, more: str = "") -> str:
    return f'<license><{kind} type="usage">{words}</{kind}>{more}</license>'


SEARCH = {"search": True, "ai-train": False, "ai-input": False}
EVERY, NONE = dict.fromkeys(SEARCH, True), dict.fromkeys(SEARCH, False)
NO_AI = {"ai-train": False, "ai-input": False}


@pytest.mark.parametrize(
    ("text", "answers"),
    [
        (rsl(use("prohibits", "all"), more=' server="https://rslcollective.org/api"'), NONE),
        (rsl(use("permits", "search")), SEARCH),
        (rsl(use("prohibits", "ai-all")), NO_AI),
        (rsl(use("prohibits", "ai-train ai-input")), NO_AI),
        (rsl(use("permits", "all")), EVERY),
        (rsl(use("permits", "all", '<prohibits type="usage">ai-train</prohibits>')), {**EVERY, "ai-train": False}),
        (rsl(use("permits", "ai-train", '<payment type="crawl"/>')), NONE),
        (rsl(use("permits", "ai-train", '<payment type="free"/>')), {**NONE, "ai-train": True}),
        (rsl(use("permits", "all", '<permits type="user">education</permits>')), NONE),
        (rsl(use("permits", "all"), more=' server="https://api.example.com"'), NONE),
        (rsl(use("permits", "search") + use("permits", "ai-input")), {**SEARCH, "ai-input": True}),
        (rsl(use("permits", "all") + use("prohibits", "ai-input")), {**EVERY, "ai-input": False}),
        (rsl("<license><permits>search</permits></license>"), SEARCH),
        (rsl(use("permits", "ai-index")), NONE),
        (rsl("<license/>"), {}),
    ],
)  # fmt: skip
def test_license_documents(text: bytes, answers: dict[str, bool]) -> None:
    [(path, found)] = license_rules(text, ORIGIN)
    assert path.text == "/"
    assert dict.fromkeys(found.allows, True) | dict.fromkeys(found.refuses, False) == answers


def test_a_license_may_be_a_feed() -> None:
    """RSL, "Adding RSL to robots.txt": the address of a license or a feed; "File Format": items with `rsl:content`."""
    items = "".join(
        f"<item><title>x</title><link>{ORIGIN}{path}</link><rsl:content url='{ORIGIN}{path}'><rsl:license>"
        f"<rsl:{kind} type='usage'>{words}</rsl:{kind}></rsl:license></rsl:content></item>"
        for path, kind, words in (("/a", "prohibits", "ai-train"), ("/b", "permits", "search"))
    )
    feed = f"<rss xmlns:rsl='https://rslstandard.org/rsl' version='2.0'><channel>{items}</channel></rss>".encode()
    assert [(path.text, one.allows, one.refuses) for path, one in license_rules(feed, ORIGIN)] == [
        ("/a", (), ("ai-train",)),
        ("/b", ("search",), ("ai-train", "ai-input")),
    ]


def test_a_license_is_for_the_paths_of_its_origin() -> None:
    assert [path.text for path, _ in license_rules(rsl(use("permits", "all"), "/news/*"), ORIGIN)] == ["/news/*"]
    text = rsl(use("permits", "all"), "https://example.org/a")
    assert [path.text for path, _ in license_rules(text, ORIGIN)] == ["/a"]
    assert list(license_rules(rsl(use("permits", "all"), "https://other.test/"), ORIGIN)) == []


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"<html><body>not found</body></html>",
        b"<rsl><content url='/'>",
        b'<!DOCTYPE rsl [<!ENTITY a "b">]>' + rsl(use("permits", "&a;")),
        rsl(use("permits", "all")).replace(b"https://rslstandard.org/rsl", b"https://example.org/"),
        b"\xff\xff\xff",
    ],
)
def test_what_is_no_license_document_states_nothing(text: bytes) -> None:
    assert list(license_rules(text, ORIGIN)) == []
