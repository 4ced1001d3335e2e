"""A minimal file for each cause for which Google's parser gives another answer, and for some for which it does not.

The answers in the column "Google" of docs/reference/robots.md come from https://github.com/google/robotstxt.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from gossamer.stages.robots.patterns import WILDCARD_BYTES_MAX
from gossamer.stages.robots.rules import RobotsRules
from tests.stages.robots.test_protego import shown

HOST = "https://example.org"
TEXT = (Path(__file__).parents[3] / "docs/reference/robots.md").read_text(encoding="utf-8")
SECTION = TEXT.partition("## Where Google's parser differs")[2].partition("\n## ")[0]

# Rules, path, what Gossamer makes of them; Google's parser says the opposite.
DIFFERENT = [
    ("Disallow: private/", "/private/x", False),
    ("Disallow: /a b", "/a%20b", False),
    ("Disallow: /a\nAllow: /a b", "/a%20b", True),
    ("Disallow: https://example.org/x", "/x", False),
    ("Disallow: https://example.org/", "/", False),
    ("Disallow: /", "/robots.txt", True),
    ("Disallow: /\nAllow: /a/index.html", "/a/", False),
    ("Disallow: /%62", "/b", False),
    ("Disallow: /\nAllow: /%62", "/b", True),
    ("Disallow: /a?u=https://x", "/a?u=https%3A%2F%2Fx", False),
    ("Disallow: /x%4", "/x%4A", True),
    ("Disallow /x:y", "/x:y", False),
    ("Disallow: /\nAllow /x:y", "/x:y", True),
]


@pytest.mark.promise("Politeness", "Every difference from Google's robots.txt parser is listed in the documentation.")
@pytest.mark.parametrize(("text", "path", "allowed"), DIFFERENT)
def test_every_cause_is_listed_with_its_example(text: str, path: str, allowed: bool) -> None:
    assert RobotsRules.parse(f"User-agent: *\n{text}\n".encode(), origin=HOST).allows(HOST + path) is allowed
    ours, theirs = ("allowed", "denied") if allowed else ("denied", "allowed")
    assert f"| `{shown(text)}` | `{path}` | {ours} | {theirs} |" in SECTION


@pytest.mark.promise("Politeness", "Every difference from Google's robots.txt parser is listed in the documentation.")
def test_no_other_example_is_listed() -> None:
    examples = [line for line in SECTION.splitlines() if line.startswith("| ") and "` | `/" in line]
    assert len(examples) == len(DIFFERENT)


def test_utf16_and_its_marks_and_long_groups_are_read_strictly() -> None:
    wild = "".join(f"Disallow: /no/*{'x' * 1000}{i}\n" for i in range(WILDCARD_BYTES_MAX // 1000 + 1))
    for text in (
        "User-agent: *\nDisallow: /x\n".encode("utf-16"),
        b"\xff\xfeUser-agent: *\nDisallow: /x\n",
        b"\xfe\xffUser-agent: *\nDisallow: /x\n",
        f"User-agent: *\n{wild}Disallow: /x*y\n".encode(),
    ):
        assert not RobotsRules.parse(text).allows("/x")


# Files whose answers agree, because they did not always: file, path, the answer of both.
EQUAL = [
    ("User-agent: *\nDisallow: https://other.example/", "/", True),
    ("User-agent: *\nDisallow: https://other.example/*$", "/x", True),
    ("User-agent: *\nDisallow: http://other.example", "/", True),
    ("User-agent: *\nDisallow: https://other.example/x", "/x", True),
    ("User-agent: *\nDisallow: //example.org/", "/", True),
    ("User-agent: gossamer2\nDisallow: /", "/", False),
    ("User-agents: *\nDisallows: /", "/", False),
    ("User-agent: *\nDisallow: /\nAllowed: /x", "/x", True),
    ("User-agent: *\nDisallow all:/x", "/x", False),
    ("User-agent: *\nDisallow: /x\0.html", "/x", False),
    ("\0User-agent: *\nDisallow: /", "/", True),
    ("User-agent: *\nDisallow: /x***\nAllow: /xya", "/xyab", False),
    ("User-agent: *\nDisallow: /*%2*b", "/a%2Fb", False),
    ("User-agent: *\nDisallow: /" + "a" * 20_000, "/" + "a" * 16_653, False),
    ("User-agent: *\rDisallow: /x\r\rDisallow: /y\r", "/y", False),
    ("User-agent: *\nDisallow:\t/x # why", "/x", False),
]


@pytest.mark.parametrize(("text", "path", "allowed"), EQUAL)
def test_where_both_agree(text: str, path: str, allowed: bool) -> None:
    assert RobotsRules.parse(text.encode(), origin=HOST).allows(HOST + path) is allowed
