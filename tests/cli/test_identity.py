"""The commands `identity`."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path

import pytest

from gossamer.api.identity import DIRECTORY_PATH
from tests.commands import run


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = tmp_path / "crawl.toml"
    file.write_text(
        "[operator]\ncontact = 'crawl@example.org'\npurpose = ['search']\n[robots]\nagents = ['example-bot']\n"
        "[identity]\nkey_file = 'keys.json'\ndirectory = 'https://bot.example'\nabout = 'A <corpus> of manuals.'\n"
    )
    return file


def said(*words: str) -> str:
    status, out, err = run("identity", *words)
    assert (status, err) == (0, "")
    return out


def refused(*words: str) -> str:
    status, out, err = run("identity", *words)
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
    return err


def test_keys_are_made_shown_and_rotated(config: Path) -> None:
    path = config.parent / "keys.json"
    assert f"wrote {path}" in said("new", "-c", str(config))
    assert "rotate" in refused("new", "-c", str(config))
    secret = json.loads(path.read_text())["keys"][0]["d"]
    assert "signs from" in said("rotate", "--key", str(path))
    assert "begins later" in refused("rotate", "--key", str(path))
    told = json.loads(said("show", "-c", str(config), "--json"))
    assert [one["state"] for one in told] == ["signs", "later"]
    text = said("show", "-c", str(config))
    assert all(one["keyid"] in text for one in told)
    said("rotate", "-c", str(config), "--now")
    [one] = json.loads(said("show", "-c", str(config), "--json"))
    assert one["keyid"] not in {before["keyid"] for before in told}
    assert secret not in text
    assert path.stat().st_mode & 0o777 == 0o600


def test_the_directory_is_written_for_publishing(config: Path) -> None:
    said("new", "-c", str(config))
    file, headers = config.parent / "directory.json", config.parent / "headers"
    said("directory", "-c", str(config), "-o", str(file), "--headers", str(headers))
    assert said("directory", "-c", str(config)).encode() == file.read_bytes()
    lines = dict(line.split(": ", 1) for line in headers.read_text().splitlines())
    digest = base64.b64encode(hashlib.sha256(file.read_bytes()).digest()).decode()
    assert lines["Content-Digest"] == f"sha-256=:{digest}:"
    for origin in ("", "http://bot.example", "https://bot.example/keys"):
        words = ("--key", str(config.parent / "keys.json"), "--headers", str(headers), "--origin", origin)
        assert "--origin https://" in refused("directory", *words)


def test_the_page_says_who_why_and_how_to_refuse(config: Path) -> None:
    page = said("page", "-c", str(config))
    assert 'href="mailto:crawl@example.org"' in page
    assert "(+crawl@example.org)" in page
    assert "A &lt;corpus&gt; of manuals." in page
    assert "Declared purposes: search." in page
    assert "User-agent: gossamer\nUser-agent: example-bot\nDisallow: /" in page
    assert f"https://bot.example{DIRECTORY_PATH}" in page
    assert "<script" not in page
    assert "-c FILE" in refused("page")
    config.write_text("")
    assert "operator.contact is not set" in refused("page", "-c", str(config))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[identity]\nkey_file = 'k'", "key_file needs directory"),
        ("[identity]\ndirectory = 'http://a.example'", "expected an https origin"),
        ("[identity]\ndirectory = 'https://a.example/keys'", "expected an https origin"),
        ("[identity]\nsend_from = true", "operator.contact is no mail address"),
        ("[identity]\nsend_from = true\n[operator]\ncontact = 'https://a.example/@x'", "no mail address"),
        ("[robots]\nagents = ['a b']", "agents"),
    ],
)
def test_mistakes_are_one_line(config: Path, text: str, says: str) -> None:
    config.write_text(text)
    status, _, err = run("config", "check", str(config))
    assert status == 2
    assert says in err
    assert err.count("\n") == 1
