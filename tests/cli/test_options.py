"""Options whose value may be left out."""

from __future__ import annotations

import pytest

from gossamer.cli.crawl import SERVE_PORT, with_port


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (["crawl", "--serve"], ["crawl", f"--serve={SERVE_PORT}"]),
        (["crawl", "--serve", "https://e.example/"], ["crawl", f"--serve={SERVE_PORT}", "https://e.example/"]),
        (["crawl", "--serve", "--quiet"], ["crawl", f"--serve={SERVE_PORT}", "--quiet"]),
        (["crawl", "--serve", "0", "x"], ["crawl", "--serve", "0", "x"]),
        (["crawl", "--serve=81"], ["crawl", "--serve=81"]),
        (["crawl", "--", "--serve"], ["crawl", "--", "--serve"]),
        ([], []),
    ],
)
def test_the_consoles_port_may_be_left_out(given: list[str], wanted: list[str]) -> None:
    assert with_port(given) == wanted
