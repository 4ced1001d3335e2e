"""Vocabularies of usage statements, with the examples of their drafts; and which statement decides.

AIPREF vocabulary: draft-ietf-aipref-vocab-07, editors' copy of 2026-08-19 (ietf-wg-aipref/drafts 7ca0afc).
Content signals: draft-romm-aipref-contentsignals-00 and contentsignals.org, as read by crawler-commons of 2026-07-27.
TDM Reservation Protocol: final report of the W3C community group (w3c/tdm-reservation-protocol 1a547b5, 2024-12-14).
"""

import subprocess
import sys

import pytest

from gossamer.model.usage import (
    ALLOWED,
    PURPOSES,
    REFUSED,
    STATEMENTS_MAX,
    TEXT_CHARACTERS_MAX,
    UNKNOWN,
    Rank,
    Statement,
    commons,
    content_signal,
    content_usage,
    reasons,
    resolve,
    statement,
    tdm_reservation,
    texts,
)


@pytest.mark.parametrize(
    ("value", "answers"),
    [
        ("train-ai=y, search=n", {"ai-train": True, "search": False}),  # Section 6, the first example.
        ('train-ai=y, train-ai, search=n, search="n"', {}),  # "Multiple Preferences".
        ("train-ai;allow=n, train-ai=y", {"ai-train": True}),  # "Preference Parameters".
        ('train-ai;has;parameters="?";', {}),  # The same; a parameter is missing, so parsing fails as well.
        ('train-ai;has;parameters="?"', {}),
        ("train-ai=n", {"ai-train": False}),  # draft-ietf-aipref-attach-05, section 1.2.
        ("train-ai=N", {}),  # "These tokens are case sensitive."
        ("Train-AI=n", {}),  # "where keys include uppercase characters"
        ("train-ai=?0", {}),
        ("train-ai=(n)", {}),
        ("train-ai=n;x=1, other=y", {"ai-train": False}),  # Unknown labels and parameters are ignored.
        ("train-ai=n,", {}),
        ("", {}),
        ("search=y", {"search": True}),
    ],
)
def test_content_usage(value: str, answers: dict[str, bool]) -> None:
    assert content_usage(value.encode()) == answers


@pytest.mark.parametrize("value", [b"\xff\xfe", b"train-ai=\x00", b"a" * 10_000, b"=,;=,", b"(((("])
def test_what_cannot_be_parsed_says_nothing(value: bytes) -> None:
    assert content_usage(value) == {}


@pytest.mark.parametrize(
    ("value", "answers"),
    [
        ("search=yes, ai-train=no", {"search": True, "ai-train": False}),
        ("ai-train=no, search=yes, ai-input=yes", {"ai-train": False, "search": True, "ai-input": True}),
        ("search=yes,ai-train=yes,ai-input=yes", {"search": True, "ai-train": True, "ai-input": True}),
        ("search=yes,ai-train=no,use=reference", {"search": True, "ai-train": False}),
        ("Search = Yes , AI-Train = NO", {"search": True, "ai-train": False}),
        ("ai-train=yes, ai-train=no", {"ai-train": False}),
        ("/content-signals.json", {}),
        ("ai-train=maybe", {}),
        ("", {}),
    ],
)
def test_content_signal(value: str, answers: dict[str, bool]) -> None:
    assert content_signal(value) == answers


@pytest.mark.parametrize(
    ("value", "answers"),
    [
        ("1", {"ai-train": False, "ai-input": False}),
        (" 0 ", {"ai-train": True, "ai-input": True}),
        ("2", {}),
        ("true", {}),
        ("", {}),
    ],
)
def test_tdm_reservation(value: str, answers: dict[str, bool]) -> None:
    assert tdm_reservation(value) == answers


@pytest.mark.parametrize(
    ("url", "allowed"),
    [
        ("https://creativecommons.org/publicdomain/zero/1.0/", PURPOSES),
        ("https://creativecommons.org/publicdomain/mark/1.0/deed.fr", PURPOSES),
        ("http://www.creativecommons.org/licenses/by/4.0/", PURPOSES),
        ("https://creativecommons.org/licenses/by-sa/3.0/de/", ("search", "archive")),
        ("https://creativecommons.org/licenses/by-nc/4.0/", ()),
        ("https://creativecommons.org/licenses/by-nd/4.0/", ()),
        ("https://creativecommons.org/licenses/by-nc-sa/4.0/", ()),
        ("https://creativecommons.org/about/", None),
        ("https://example.org/creativecommons.org/licenses/by/4.0/", None),
    ],
)
def test_creative_commons(url: str, allowed: tuple[str, ...] | None) -> None:
    assert commons(url) == (None if allowed is None else dict.fromkeys(allowed, True))


def said(rank: Rank, kind: str = "Content-Signal", **answers: bool) -> Statement:
    return statement(rank, rank.name.lower(), kind, "", {name.replace("_", "-"): one for name, one in answers.items()})


@pytest.mark.parametrize(
    ("statements", "value", "by"),
    [
        ([], UNKNOWN, None),
        ([said(Rank.SITE, search=True)], UNKNOWN, None),
        ([said(Rank.SITE, ai_train=False)], REFUSED, 0),
        ([said(Rank.SITE, ai_train=False), said(Rank.HEADER, ai_train=True)], ALLOWED, 1),
        ([said(Rank.HEADER, ai_train=True), said(Rank.MARKUP, ai_train=False)], REFUSED, 1),
        ([said(Rank.MARKUP, ai_train=True), said(Rank.HEADER, ai_train=False)], ALLOWED, 0),
        ([said(Rank.HEADER, ai_train=True), said(Rank.HEADER, ai_train=False)], REFUSED, 1),
        ([said(Rank.HEADER, ai_train=False), said(Rank.HEADER, ai_train=True)], REFUSED, 0),
        ([said(Rank.LICENSE, "license", ai_train=True), said(Rank.SITE, ai_train=False)], REFUSED, 1),
        ([said(Rank.LICENSE, "license", ai_train=True)], ALLOWED, 0),
    ],
)
def test_the_most_specific_decides_and_of_equals_a_refusal(
    statements: list[Statement], value: str, by: int | None
) -> None:
    answer = resolve(statements, 0.0)["ai-train"]
    assert (answer.value, answer.by) == (value, None if by is None else statements[by])


def test_a_content_usage_that_refuses_is_not_overridden_by_another() -> None:
    """draft-ietf-aipref-vocab-07, "Combining Preferences": any statement that disallows wins."""
    refused = said(Rank.SITE, "Content-Usage", ai_train=False)
    assert resolve([refused, said(Rank.HEADER, "Content-Usage", ai_train=True)], 0.0)["ai-train"].by == refused
    assert resolve([said(Rank.HEADER, "Content-Usage", ai_train=True, search=True), refused], 0.0)["search"].value == (
        ALLOWED
    )
    # A statement of another standard is more specific.
    assert resolve([refused, said(Rank.HEADER, "tdm-reservation", ai_train=True)], 0.0)["ai-train"].value == ALLOWED


def test_a_statement_counts_from_its_time_on() -> None:
    one = Statement(Rank.MARKUP, "meta", "robots", "", refuses=("search",), since=100.0)
    assert resolve([one], 99.0)["search"].value == UNKNOWN
    assert resolve([one], 100.0)["search"].value == REFUSED


def test_reasons_name_what_decided() -> None:
    one = statement(Rank.SITE, "robots.txt", "Content-Usage", "train-ai=n", {"ai-train": False})
    other = statement(Rank.HEADER, "header", "tdm-reservation", "0", {"ai-input": True, "search": True})
    assert reasons(resolve([one, other], 0.0)) == (
        "search, ai-input allowed by header tdm-reservation: 0; "
        "ai-train refused by robots.txt Content-Usage: train-ai=n"
    )


def test_texts_are_bounded() -> None:
    many = [statement(Rank.MARKUP, "meta", "robots", f"noai {number}\n\t" + "x" * 10_000) for number in range(50)]
    kept = texts(many).split("\n")
    assert len(kept) == STATEMENTS_MAX
    assert all(len(line) <= TEXT_CHARACTERS_MAX + len("meta robots: ") for line in kept)
    assert texts(many[:1] * 3).count("\n") == 0


def test_the_parser_of_structured_fields_is_loaded_by_the_first_statement_alone() -> None:
    script = (
        "import sys; from gossamer.model import usage; assert 'http_sf' not in sys.modules; "
        "usage.content_usage(b'a'); assert 'http_sf' in sys.modules"
    )
    assert subprocess.run([sys.executable, "-c", script]).returncode == 0
