"""Usage: what site owners state about the use of their pages, and which statement decides for each purpose.

Pure. `docs/reference/preferences.md` has the standards with their versions, and the rules of precedence.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import Final, Literal, get_args

import msgspec

Purpose = Literal["search", "ai-train", "ai-input", "archive"]
PURPOSES: Final[tuple[str, ...]] = get_args(Purpose)
SYNONYMS: Final[Mapping[str, str]] = {"train-ai": "ai-train", "archiving": "archive"}
"""Labels of other vocabularies, accepted where people type a purpose."""
ALLOWED = "allowed"
REFUSED = "refused"
UNKNOWN = "unknown"
AI: Final = ("ai-train", "ai-input")
TEXT_CHARACTERS_MAX = 500
"""Characters that are kept of one statement as written."""
STATEMENTS_MAX = 20
"""Statements of one page that are kept as text. All of them count."""
CONTENT_USAGE = "Content-Usage"


class Rank(IntEnum):
    """How specific a statement is about one page."""

    LICENSE = 0
    """A public license: it grants rights, and is no preference about a use."""
    SITE = 1
    """robots.txt, tdmrep.json, a license document of the site."""
    HEADER = 2
    """The reply's headers."""
    MARKUP = 3
    """The page itself."""


class Statement(msgspec.Struct, frozen=True):
    """One statement, and the purposes that it allows or refuses."""

    rank: Rank
    source: str
    """Where it is: `robots.txt`, `tdmrep.json`, `header`, `meta`, `link`."""
    kind: str
    """Its name in the standard: `Content-Usage`, `X-Robots-Tag`."""
    text: str
    """As written, at most `TEXT_CHARACTERS_MAX` characters on one line."""
    allows: tuple[str, ...] = ()
    refuses: tuple[str, ...] = ()
    since: float = 0.0
    """Wall time from which it applies (`unavailable_after`)."""

    def __str__(self) -> str:
        return f"{self.source} {self.kind}: {self.text}"


class UsageAnswer(msgspec.Struct, frozen=True):
    """The answer for one purpose, and the statement that decided; `unknown` without a statement."""

    value: str
    by: Statement | None = None


_NOTHING = UsageAnswer(UNKNOWN)


def statement(rank: Rank, source: str, kind: str, text: str, answers: Mapping[str, bool] | None = None) -> Statement:
    """Return a statement with its text shortened; `answers` says of each purpose whether it is allowed."""
    allows = tuple(one for one in PURPOSES if answers is not None and answers.get(one) is True)
    refuses = tuple(one for one in PURPOSES if answers is not None and answers.get(one) is False)
    return Statement(rank, source, kind, " ".join(text.split())[:TEXT_CHARACTERS_MAX], allows, refuses)


def resolve(statements: Sequence[Statement], now: float) -> dict[str, UsageAnswer]:
    """Return the answer for each purpose. The most specific statement about it decides; of equals, one that refuses.

    AIPREF's own rule comes first: where one `Content-Usage` refuses, no other `Content-Usage` allows, however specific
    (draft-ietf-aipref-vocab, "Combining Preferences").
    """
    counting = [one for one in statements if one.since <= now]
    found = dict.fromkeys(PURPOSES, _NOTHING)
    for purpose in PURPOSES:
        refused = any(purpose in one.refuses for one in counting if one.kind == CONTENT_USAGE)
        best = (-1, False)
        for one in counting:
            refuses = purpose in one.refuses
            if not refuses and (purpose not in one.allows or (refused and one.kind == CONTENT_USAGE)):
                continue
            if (one.rank, refuses) > best:
                best = one.rank, refuses
                found[purpose] = UsageAnswer(REFUSED if refuses else ALLOWED, one)
    return found


def reasons(answers: Mapping[str, UsageAnswer]) -> str:
    """Return the statements that decided, for people: `ai-train refused by robots.txt Content-Usage: train-ai=n`."""
    decided: dict[str, list[str]] = {}
    for purpose, answer in answers.items():
        if answer.by is not None:
            decided.setdefault(f"{answer.value} by {answer.by}", []).append(purpose)
    return "; ".join(f"{', '.join(purposes)} {how}" for how, purposes in decided.items())


def texts(statements: Iterable[Statement]) -> str:
    """Return statements as written, one a line, each once, at most `STATEMENTS_MAX`."""
    return "\n".join(list(dict.fromkeys(str(one) for one in statements))[:STATEMENTS_MAX])


# ---- vocabularies

_AIPREF: Final[Mapping[str, str]] = {"train-ai": "ai-train", "search": "search"}
_SIGNALS: Final = frozenset(("search", "ai-train", "ai-input"))
_SIGNAL = re.compile(r"\s*([a-z-]+)\s*=\s*(yes|no)\s*", re.IGNORECASE)
_TDM: Final[Mapping[str, bool]] = {"1": False, "0": True}


def content_usage(value: bytes) -> dict[str, bool]:
    """Return the answers of an AIPREF usage preference (draft-ietf-aipref-vocab, "Processing Algorithm"). About 4 µs.

    Undefined labels and values, and text that cannot be parsed, are ignored.
    """
    # Most crawls see no such header, and the import takes 38 ms.
    from http_sf import StructuredFieldError, Token, parse  # noqa: PLC0415

    try:
        members = parse(value, tltype="dictionary")
    except StructuredFieldError:
        return {}
    found = {}
    assert isinstance(members, dict)
    for label, purpose in _AIPREF.items():
        member = members.get(label)
        said = member[0] if isinstance(member, tuple) else None
        if isinstance(said, Token) and str(said) in ("y", "n"):
            found[purpose] = str(said) == "y"
    return found


def content_signal(value: str) -> dict[str, bool]:
    """Return the answers of a content signal: `search=yes, ai-train=no`. If a signal is given twice, `no` counts."""
    found: dict[str, bool] = {}
    for part in value.split(","):
        said = _SIGNAL.fullmatch(part)
        if said is not None and (name := said[1].lower()) in _SIGNALS:
            found[name] = found.get(name, True) and said[2].lower() == "yes"
    return found


def tdm_reservation(value: str) -> dict[str, bool]:
    """Read a TDM reservation: 1 reserves text and data mining, 0 does not; others are protocol errors."""
    said = _TDM.get(value.strip())
    return {} if said is None else dict.fromkeys(AI, said)


_COMMONS = re.compile(r"https?://(?:www\.)?creativecommons\.org/(licenses|publicdomain)/([a-z+-]+)/", re.IGNORECASE)
_COMMONS_ALLOW: Final[Mapping[str, tuple[str, ...]]] = {
    "publicdomain/zero": PURPOSES,
    "publicdomain/mark": PURPOSES,
    "licenses/by": PURPOSES,
    "licenses/by-sa": ("search", "archive"),
}


def commons(url: str) -> dict[str, bool] | None:
    """Return the uses that a Creative Commons license allows; None for any other address.

    Works in the public domain, and under BY, may be used for all purposes (BY: with attribution). Whether a model is
    adapted material that BY-SA would cover is unsettled, and the conditions NC and ND cannot be checked here.
    """
    found = _COMMONS.match(url)
    if found is None:
        return None
    return dict.fromkeys(_COMMONS_ALLOW.get(f"{found[1]}/{found[2]}".lower(), ()), True)
