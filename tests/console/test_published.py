"""What a console publishes about its crawl: a page for the owners of sites, and the key directory for verifiers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from http_message_signatures import HTTPMessageVerifier, algorithms

from gossamer.api.identity import DIRECTORY_PATH, PAGE_PATH
from tests.console.conftest import Caller, Commands
from tests.features.identity.test_signing import Message, Resolver

CONFIG = """
[operator]
contact = 'crawl@example.org'
[identity]
key_file = 'keys.json'
directory = 'https://bot.example'
"""


@pytest.mark.heavy
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


def created(call: Caller, name: str, **identity: str) -> None:
    config = {
        "seeds": {"urls": ["http://127.0.0.1:9/"]},
        "resolve": {"allow_private": True},
        "operator": {"contact": "crawl@example.org"},
        "identity": {"about": f"It is the crawl {identity['key_file'][-6]}.", **identity},
    }
    made = call.post("/api/crawls", name=name, config=config, start=False)
    assert made.status == 201, made.body


@pytest.mark.heavy
@pytest.mark.promise("Identity", "A server of many crawls publishes the keys of all that sign for its origin.")
def test_a_folder_publishes_the_keys_of_its_crawls(run: Commands, web: str) -> None:
    call, _ = run.served("serve", "--folder", ".", "--port", "0")
    assert (call("GET", DIRECTORY_PATH).status, call("GET", PAGE_PATH).status) == (404, 404)
    files = [str(run.directory / f"{name}.json") for name in "abc"]
    for file in files:
        assert run("identity", "new", "--key", file)[0] == 0
    ids = [json.loads(Path(file).read_text())["keys"][0]["kid"] for file in files]
    created(call, "a", key_file=files[0], directory="https://bot.example")
    # One that was begun, by its own record of its configuration.
    (run.directory / "b.toml").write_text(CONFIG.replace("keys", "b") + "about = 'It is the crawl b.'\n")
    words = (web, "-c", "b.toml", "-o", "b", "--allow-private", "--quiet", "--max-pages", "1")
    assert run("crawl", *words)[0] == 0
    proxied = {"Host": "bot.example", "Sec-Fetch-Site": "cross-site"}
    for headers in (proxied, {}):  # A proxy may send its own name.
        keys = call("GET", DIRECTORY_PATH, headers=headers)
        assert [one["kid"] for one in json.loads(keys.body)["keys"]] == ids[:2]
        assert_signed(keys.body, keys.headers, signatures=2)
    # Another origin has its own directory.
    created(call, "c", key_file=files[2], directory="https://other.example")
    assert [one["kid"] for one in json.loads(call("GET", DIRECTORY_PATH, headers=proxied).body)["keys"]] == ids[:2]
    other = call("GET", DIRECTORY_PATH, headers={"Host": "other.example"})
    assert [one["kid"] for one in json.loads(other.body)["keys"]] == ids[2:]
    assert call("GET", DIRECTORY_PATH).status == 404, "which origin is meant is not known"
    page = call("GET", PAGE_PATH, headers=proxied)
    assert (page.status, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert all(f"It is the crawl {name}." in page.body.decode() for name in "abc")
    # What cannot be read does not take the others away; what was rotated is there at once.
    Path(files[0]).unlink()
    assert run("identity", "rotate", "--key", files[1], "--now")[0] == 0
    [kept] = json.loads(call("GET", DIRECTORY_PATH, headers=proxied).body)["keys"]
    assert kept["kid"] not in ids


def assert_signed(body: bytes, headers: object, signatures: int = 1) -> None:
    """Verify the directory's signature as one who fetched it from its own origin."""
    assert isinstance(headers, dict)
    names = {"content-digest": "Content-Digest", "signature-input": "Signature-Input", "signature": "Signature"}
    response = Message("", "", {name: headers[low] for low, name in names.items()})
    response.status_code = 200  # type: ignore[attr-defined]
    request = Message("GET", f"https://bot.example{DIRECTORY_PATH}", {})
    response.request = request  # type: ignore[attr-defined]
    verifier = HTTPMessageVerifier(signature_algorithm=algorithms.ED25519, key_resolver=Resolver(body))
    results = verifier.verify(response, expect_tag="http-message-signatures-directory")
    assert [one.covered_components['"@authority";req'] for one in results] == ["bot.example"] * signatures


def unsigned(call: Caller, config: Path) -> None:
    """Where the key file is gone a stranger reads that nothing is published, and not where it was."""
    (config.parent / "keys.json").unlink()
    gone = call("GET", DIRECTORY_PATH)
    assert (gone.status, gone.body) == (404, b"not published\n")
