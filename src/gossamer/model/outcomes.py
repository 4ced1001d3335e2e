"""Outcomes: how an attempt at a URL can end, and what each outcome means. Outcomes are declared only here."""

from typing import Final, Literal, NamedTuple

Outcome = Literal[
    "fetched", "not_modified", "redirected", "http_error", "robots_denied", "excluded", "dns_error", "connect_error",
    "tls_error", "timeout", "protocol_error", "too_large", "unsupported", "trapped", "host_closed",
    "robots_unreachable", "payment_required", "legally_blocked", "challenged", "login_required",
    "not_repeated", "process_crashed", "internal_error", "usage_denied", "usage_withheld",
]  # fmt: skip


class Meaning(NamedTuple):
    """Meaning of an outcome for its URL."""

    has_content: bool = False
    """The page exists, and we have its content."""
    succeeded: bool = False
    """The server answered with the page, or with its new address."""
    may_pass: bool = False
    """The cause may be temporary: an error of the network, of the server, or of its robots.txt."""
    unconnected: bool = False
    """There was no connection, so a retry costs the server nothing."""
    never_again: bool = False
    """A continuous crawl does not visit the URL again."""


MEANINGS: Final[dict[Outcome, Meaning]] = {
    "fetched": Meaning(has_content=True, succeeded=True),
    "not_modified": Meaning(has_content=True, succeeded=True),
    "redirected": Meaning(succeeded=True),
    "http_error": Meaning(),
    "robots_denied": Meaning(),
    "excluded": Meaning(never_again=True),
    "dns_error": Meaning(may_pass=True, unconnected=True),
    "connect_error": Meaning(may_pass=True, unconnected=True),
    "tls_error": Meaning(may_pass=True),
    "timeout": Meaning(may_pass=True),
    "protocol_error": Meaning(may_pass=True),
    "too_large": Meaning(),
    "unsupported": Meaning(),
    "trapped": Meaning(never_again=True),
    "host_closed": Meaning(may_pass=True, never_again=True),
    "robots_unreachable": Meaning(may_pass=True),
    "payment_required": Meaning(),
    "legally_blocked": Meaning(),
    "challenged": Meaning(may_pass=True),
    "login_required": Meaning(may_pass=True),
    "not_repeated": Meaning(never_again=True),
    "process_crashed": Meaning(),
    "internal_error": Meaning(),
    "usage_denied": Meaning(),  # Its site refuses all declared purposes: not requested.
    "usage_withheld": Meaning(succeeded=True),  # The page itself refuses them: fetched, and not kept.
}
OUTCOMES: Final = tuple(MEANINGS)


def status_error(status: int | str) -> str:
    """Return the error text of an attempt whose reply has an HTTP status other than success."""
    return f"HTTP {status}"


CUT_SHORT: Final = "its answer was cut short"
"""The error of a robots.txt that was received only in part."""
ANSWERED: Final = f": ({status_error('[0-9]+')}|{CUT_SHORT})$"
"""A regular expression that matches the error of a `robots_unreachable` whose server answered. Tables do not mark these
rows in any other way.
"""
# Sets, for fast lookups once per page.
WITH_CONTENT: Final[frozenset[str]] = frozenset(name for name, one in MEANINGS.items() if one.has_content)
SUCCEEDED: Final[frozenset[str]] = frozenset(name for name, one in MEANINGS.items() if one.succeeded)
MAY_PASS: Final[frozenset[str]] = frozenset(name for name, one in MEANINGS.items() if one.may_pass)
UNCONNECTED: Final[frozenset[str]] = frozenset(name for name, one in MEANINGS.items() if one.unconnected)
NEVER_AGAIN: Final[frozenset[str]] = frozenset(name for name, one in MEANINGS.items() if one.never_again)
