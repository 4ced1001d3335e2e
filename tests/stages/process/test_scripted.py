"""What says that a page, as its server sent it, lacks what scripts would add."""

from __future__ import annotations

import pytest

from gossamer.stages.process.scripted import signal_of, text_bytes

SCRIPT, TEXT = "<script src=/app.js></script>", "<p>" + "Words that a server sends. " * 20


@pytest.mark.parametrize(
    ("html", "links", "signal"),
    [
        ("<p>No script." + TEXT, 0, None),
        (
            f'<script id=d type="application/ld+json">{{}}</script><script type=application/json>[]</script>{TEXT}',
            0,
            None,
        ),
        (f'<script type="application/ld+json">{{}}</script>{SCRIPT}{TEXT}', 2, "scripts"),
        (f"<SCRIPT>x</SCRIPT>{TEXT}", 20, ""),
        (f"<div id=root></div>{SCRIPT}", 0, "root"),
        (f'<div class=x id="app" data-x> <!-- filled --> </div>{SCRIPT}{TEXT}', 20, "root"),
        (f"<app-root>Loading</app-root>{SCRIPT}", 0, "root"),
        (f"<div id=root>{TEXT}</div>{SCRIPT}", 20, ""),
        (f"<noscript>You need to enable JavaScript.</noscript>{SCRIPT}{TEXT}", 0, "noscript"),
        (f"<title>x</title><p>Loading…{SCRIPT}<style>{'x' * 900}</style>", 3, "empty"),
        (f"<div data-reactroot>{TEXT}</div>{SCRIPT}", 6, "framework"),
        (f"{TEXT}{SCRIPT}", 2, "scripts"),
        (f"{TEXT}{SCRIPT}", 8, ""),
        (f"{TEXT}{SCRIPT}", 20, ""),
        (f"<div id=root></div>{SCRIPT}{TEXT}", 60, ""),
    ],
)
def test_signals_in_the_markup(html: str, links: int, signal: str | None) -> None:
    assert signal_of(html.encode(), links) == signal


def test_text_is_measured_without_markup_and_scripts() -> None:
    assert text_bytes(b"<p>ab <b>cd</b><!-- no --><script>no</script > <STYLE>no</STYLE>\n ef<script>no") == 6


@pytest.mark.parametrize("piece", [b"<", b"<script", b"<!--", b"<noscript>", b"id=app>", b"id=app ", b"<a ", b" "])
def test_markup_that_is_made_to_cost_is_read_once(piece: bytes) -> None:
    body = b"<script>" + piece * (2_000_000 // len(piece))
    text_bytes(body)  # If it looked at each byte more than some hundred times, this would take minutes.
    assert signal_of(body[:200_000], 0) is not None
