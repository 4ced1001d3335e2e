"""A crawl that signs every request, verified by a library that is not ours; its private key is shown nowhere."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest
from fastwarc.warc import ArchiveIterator, WarcRecordType
from http_message_signatures import HTTPMessageVerifier, InvalidSignature, algorithms

from gossamer.features.identity.keys import new_keys, read_keys
from gossamer.features.identity.signing import directory_of
from gossamer.world.clock import WallClock
from tests.answering import Answering, serving
from tests.commands import run
from tests.features.identity.test_signing import Message, Resolver
from tests.ring.crawls import OWN, Crawled, crawl

DIRECTORY = "https://bot.example"


class Page(Answering):
    def get(self) -> None:
        asked: list[Message] = self.server.asked  # type: ignore[attr-defined]
        headers = dict(self.headers.items())
        asked.append(Message(self.command, f"http://{headers['Host']}{self.path}", headers))
        if self.path == "/moved":
            self.answer(302, b"", ("Location", "/a%7Eb?q=1"))
        else:
            self.answer(200, b"" if self.path == "/robots.txt" else b'<a href="/moved">m</a>')


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Crawled, list[Message], Path]]:
    folder = tmp_path_factory.mktemp("signed")
    key_file = folder / "identity.json"
    new_keys(key_file, WallClock().now())
    asked: list[Message] = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    server.asked = asked  # type: ignore[attr-defined]
    with serving(server):
        yield (
            crawl(
                (f"http://127.0.0.1:{server.server_port}/",),
                folder / "crawl",
                *OWN,
                f"identity.key_file={key_file}",
                f"identity.directory={DIRECTORY}",
                "identity.send_from=true",
                "operator.contact=mailto:crawl@example.org",
                "archive.warc_request_records=true",
            ),
            asked,
            key_file,
        )


@pytest.mark.promise("Identity", "Every request is signed, those for robots.txt and each hop of a redirect included.")
def test_every_request_is_signed(signed: tuple[Crawled, list[Message], Path]) -> None:
    crawled, asked, key_file = signed
    assert crawled.critical() == ""
    document = directory_of(read_keys(key_file), WallClock().now())
    verifier = HTTPMessageVerifier(signature_algorithm=algorithms.ED25519, key_resolver=Resolver(document))
    paths = [message.url.partition("/")[2].partition("/")[2].partition("/")[2] for message in asked]
    assert sorted(paths) == ["", "a%7Eb?q=1", "moved", "robots.txt"]
    for message in asked:
        [result] = verifier.verify(message, expect_tag="web-bot-auth")
        assert result.covered_components['"signature-agent";key="sig1"'] == f'"{DIRECTORY}"'
        message.url = message.url.replace("/moved", "/other")
        if "/other" in message.url:
            with pytest.raises(InvalidSignature):
                verifier.verify(message, expect_tag="web-bot-auth")
    signatures = {message.headers["Signature"] for message in asked}
    assert len(signatures) == len(asked)


def test_the_archive_has_requests_as_sent_and_no_output_shows_the_private_key(
    signed: tuple[Crawled, list[Message], Path],
) -> None:
    crawled, asked, key_file = signed
    sent = {message.headers["Signature"] for message in asked}
    kept = set()
    for file in crawled.directory.glob("warc/*.warc.gz"):
        with file.open("rb") as warc:
            for record in ArchiveIterator(warc, record_types=WarcRecordType.request, parse_http=True):
                kept.add(record.http_headers["Signature"])
                assert record.http_headers["From"] == "crawl@example.org"
    assert kept == sent
    secret = json.loads(key_file.read_text())["keys"][0]["d"]
    shown = run("config", "show", str(crawled.directory))[1] + json.dumps(crawled.status)
    files = [path for path in crawled.directory.rglob("*") if path.is_file()]
    assert secret not in shown
    assert [path for path in files if secret.encode() in path.read_bytes()] == []


def test_a_crawl_that_does_not_sign_needs_no_cryptography(tmp_path: Path) -> None:
    """And one that is to sign says in one line what is missing."""
    code = (
        "import sys; sys.modules['cryptography'] = None\n"
        "from gossamer.model import extras; find = extras.find_spec\n"
        "extras.find_spec = lambda name: None if name == 'cryptography' else find(name)\n"
        "from gossamer.assembly.protocols import protocol_modules; from gossamer.config import configure\n"
        "from gossamer.world.clock import WallClock\n"
        "protocol_modules(configure(), 'a', WallClock())\n"
        "print('plain')\n"
        "protocol_modules(configure(sets=sys.argv[1:]), 'a', WallClock())\n"
    )
    sets = (f"identity.key_file={tmp_path}/k", f"identity.directory={DIRECTORY}")
    done = subprocess.run([sys.executable, "-c", code, *sets], capture_output=True, text=True, timeout=60)
    assert done.stdout == "plain\n"
    assert "ConfigError: identity.key_file needs the package cryptography" in done.stderr
