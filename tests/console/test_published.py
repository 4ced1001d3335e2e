"""What a console publishes about its crawl: a page for the owners of sites, and the key directory for verifiers."""

from __future__ import annotations

from pathlib import Path

import pytest
from http_message_signatures import HTTPMessageVerifier, algorithms

from gossamer.api.identity import DIRECTORY_PATH, PAGE_PATH
from tests.console.conftest import Caller, Commands
from tests.identity.test_signing import Message, Resolver

CONFIG = """
[operator]
contact = 'crawl@example.org'
[identity]
key_file = 'keys.json'
directory = 'https://bot.example'
"""


@pytest.mark.promise("Identity", "The key directory is served with its media type and a signature by each of its keys.")
def test_a_server_publishes_page_and_directory(run: Commands, web: str) -> None:
    config = run.directory / "crawl.toml"
    config.write_text(CONFIG)
    assert run("identity", "new", "-c", str(config))[0] == 0
    words = (web, "-c", str(config), "-o", "one", "--allow-private", "--quiet", "--max-pages", "1")
    assert run("crawl", *words)[0] == 0
    call, _ = run.served("serve", "one", "--port", "0")
    proxied = {"Host": "bot.example", "Sec-Fetch-Site": "cross-site"}
    page = call("GET", PAGE_PATH, headers=proxied)
    assert (page.status, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert b"crawl@example.org" in page.body
    keys = call("GET", DIRECTORY_PATH, headers=proxied)
    assert keys.headers["content-type"] == "application/http-message-signatures-directory+json"
    assert_signed(keys.body, keys.headers)
    assert call("GET", "/api/status", headers=proxied).status == 421
    unsigned(call, config)


def assert_signed(body: bytes, headers: object) -> None:
    """Verify the directory's signature as one who fetched it from its own origin."""
    assert isinstance(headers, dict)
    names = {"content-digest": "Content-Digest", "signature-input": "Signature-Input", "signature": "Signature"}
    response = Message("", "", {name: headers[low] for low, name in names.items()})
    response.status_code = 200  # type: ignore[attr-defined]
    request = Message("GET", f"https://bot.example{DIRECTORY_PATH}", {})
    response.request = request  # type: ignore[attr-defined]
    verifier = HTTPMessageVerifier(signature_algorithm=algorithms.ED25519, key_resolver=Resolver(body))
    [result] = verifier.verify(response, expect_tag="http-message-signatures-directory")
    assert result.covered_components['"@authority";req'] == "bot.example"


def unsigned(call: Caller, config: Path) -> None:
    """Where the key file is gone a stranger reads that nothing is published, and not where it was."""
    (config.parent / "keys.json").unlink()
    gone = call("GET", DIRECTORY_PATH)
    assert (gone.status, gone.body) == (404, b"not published\n")
