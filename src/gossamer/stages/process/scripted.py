"""Scripted: signals that a page, as its server sent it, lacks content that scripts would add."""

import re
from typing import Final

SIGNALS: Final = ("root", "noscript", "empty", "framework", "scripts", "")
"""Signals that scripts create a page's content, the most certain first; empty: it has scripts, but no signal."""
ANCHORS_MANY = 50
ANCHORS_FEW = 10
ANCHORS_FEWEST = 5
"""With more links, a page is complete; is complete unless it has an empty root; may be incomplete in any case."""
TEXT_FEW_BYTES: Final = 200
UPPER_CASE_BYTES_MAX: Final = 16_384
"""Beginning of a page in which an upper-case SCRIPT is searched for: such markup is old, and has it in the head."""
MEASURED_BYTES_MAX: Final = 2 << 20
"""Beginning of a page whose text is measured."""
_SCRIPT = re.compile(
    rb"""<(?:script|SCRIPT)(?!(?i:[^<>]{0,400}\stype=["']?"""
    rb"""(?:application/(?:ld\+)?json|text/(?:plain|html|x-template)|speculationrules)))"""
)
"""One that runs: others hold data and templates."""
# It begins with letters, and minds their case: then the search for them alone takes time.
_ROOT = re.compile(
    rb"""id=["']?(?:app|root|__next|__nuxt|___gatsby|svelte|q-app|main-app|application|mount)["']?"""
    rb"""[^<>]{0,200}>\s{0,200}(?:<!--[^<>]{0,200}-->)?\s{0,200}</"""
)
_ANGULAR_ROOT: Final = b"<app-root"
_NOSCRIPT = re.compile(rb"(?i)<noscript[^<>]{0,100}>[^\0]{0,400}?javascript")
_FRAMEWORK = re.compile(
    rb"__NEXT_DATA__|__NUXT__|data-reactroot|ng-version=|ng-app|data-v-app|data-server-rendered|astro-island|x-data="
    rb"|data-svelte|sveltekit|q:container|data-hydrate|__remixContext|ember-application"
)
# Linear for all input: neither alternative looks past the next `<` without taking what it passed.
_NO_TEXT = re.compile(
    rb"(?is)<(script|style|template|noscript)\b.*?(?:</\1[^<>]*>?|\Z)|<!--.*?(?:-->|\Z)|<[^<>]*>?|\s+"
)


def signal_of(body: bytes, anchors: int) -> str | None:
    """Return the signal of a page, one of `SIGNALS`, by its body as sent and its number of links; None without
    executable scripts.

    About 5 µs for a page with many links, and 1 µs a KB for others; without scripts 0.5 µs a KB.
    """
    if b"<script" not in body and body.find(b"<SCRIPT", 0, UPPER_CASE_BYTES_MAX) < 0:
        return None
    if _SCRIPT.search(body) is None:
        return None
    if anchors > ANCHORS_MANY:
        return ""
    if _ROOT.search(body) or _ANGULAR_ROOT in body:
        return "root"
    if anchors > ANCHORS_FEW:
        return ""
    if _NOSCRIPT.search(body):
        return "noscript"
    if text_bytes(body, TEXT_FEW_BYTES) < TEXT_FEW_BYTES:
        return "empty"
    if _FRAMEWORK.search(body):
        return "framework"
    return "scripts" if anchors < ANCHORS_FEWEST else ""


def text_bytes(body: bytes, enough: int = MEASURED_BYTES_MAX) -> int:
    """Return about how long a page's visible text is, without white space, up to `enough`. 25 µs a KB looked at."""
    text = end = 0
    for markup in _NO_TEXT.finditer(body, 0, MEASURED_BYTES_MAX):
        text += markup.start() - end
        end = markup.end()
        if text >= enough:
            return text
    return text + len(body[end:MEASURED_BYTES_MAX])
