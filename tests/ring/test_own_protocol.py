"""The protocol module that docs/reference/fetching.md shows, against a Finger server."""

from __future__ import annotations

import asyncio
import re
import socketserver
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import pytest

from gossamer.api.status import why_of
from gossamer.config import configure
from gossamer.model.errors import ConfigError
from gossamer.plugins import build
from gossamer.ports import ProtocolModule
from gossamer.stages.fetch.options import FetchOptions
from gossamer.stages.scope.roots import Roots
from gossamer.testing import FakeClock
from gossamer.testing.conformance import check_protocol_module
from gossamer.url.name import Namer
from gossamer.url.url import Url
from tests.answering import serving
from tests.ring.crawls import OWN, Crawled, command_line, crawl, rows, until
from tests.stages.archive import strict

PAGE = (Path(__file__).parents[2] / "docs/reference/fetching.md").read_text(encoding="utf-8")
pytestmark = pytest.mark.promise(
    "Components and Python",
    "A URL scheme that a component adds has scope, politeness, robots.txt and archive like ours.",
)

SECTION = PAGE[PAGE.index("## Add a protocol") :]


class Fingers:
    """A Finger server: a user's text for a line, nothing for one that is not there."""

    def __init__(self, latency_s: float = 0.0) -> None:
        self.plans: dict[bytes, bytes] = {}
        self.asked: Counter[bytes] = Counter()
        fingers = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                user = self.rfile.readline().removesuffix(b"\r\n")
                fingers.asked[user] += 1
                time.sleep(latency_s)
                self.wfile.write(fingers.plans.get(user, b""))

        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        self.root = f"finger://localhost:{self.port}/"

    @contextmanager
    def serving(self) -> Iterator[Fingers]:
        with serving(self._server):
            yield self


@pytest.fixture
def shown(tmp_path: Path) -> Path:
    """Write what the page shows, as it says; return the configuration."""
    folder = tmp_path / "shown"
    folder.mkdir()
    for language in ("python", "toml"):
        found = re.search(rf"^```{language}\n(# (\S+)\n.*?)^```$", SECTION, re.MULTILINE | re.DOTALL)
        assert found is not None
        (folder / found[2]).write_text(found[1])
    return folder / "finger.toml"


def crawled(shown: Path, fingers: Fingers, directory: Path, *sets: str) -> Crawled:
    components = shown.parent / "finger_module.py"
    return crawl(
        (fingers.root + "ann",), directory, *OWN, f"components.protocols={{ finger = '{components}:Finger' }}",
        "scope.schemes=['finger']", *sets,
    )  # fmt: skip


def test_the_example_of_the_documentation_crawls(shown: Path, tmp_path: Path) -> None:
    with Fingers().serving() as fingers:
        root, port = fingers.root, fingers.port
        fingers.plans |= {
            b"ann": f"See {root}bob, FINGER://LocalHost:{port}/bob and {root}c%20d. And http://localhost/.".encode(),
            b"bob": f"{root}ann finger://localhost:{port} finger://other.test/eve".encode(),
            b"c d": b"alone",
            b"": b"ann bob",
        }
        config = configure(shown)
        ours = crawled(shown, fingers, tmp_path / "crawl", "process.types={'text/plain'=['text_links']}")
        assert ours.end == "finished"
        assert ours.critical() == ""
        expected = Counter([root + "ann", root + "bob", root + "c%20d", root])
        assert Counter(row["url"] for row in ours.rows) == expected
        assert {row["outcome"] for row in ours.rows} == {"fetched"}
        assert fingers.asked == Counter([b"ann", b"bob", b"c d", b""]), "each once, and no robots.txt"
        again = crawl((), tmp_path / "crawl", resuming=True)
        assert again.end == "finished"
        assert fingers.asked.total() == 4
    assert config.scope.schemes == ("finger",)
    assert config.components.protocols == {"finger": f"{shown.parent}/finger_module.py:Finger"}
    archives = sorted((ours.directory / "warc").iterdir())
    assert strict.faults(archives) == []
    assert [record.kind for path in archives for record in strict.read(path)].count("resource") == 4
    assert (root + "bob", "finger://other.test/eve") in ours.links
    assert why_of(ours.directory, f"finger://LOCALHOST:{port}/bob")["state"] == "fetched"
    with pytest.raises(ConfigError, match=r"components\.protocols\.finger: this crawl began with this scheme"):
        crawl((), tmp_path / "crawl", "components.protocols={}", "scope.schemes=['http']", resuming=True)


@pytest.mark.heavy
def test_the_command_of_the_documentation_survives_kills(shown: Path, tmp_path: Path) -> None:
    users = [b"ann", *(b"user%d" % number for number in range(60))]
    with Fingers(latency_s=0.05).serving() as fingers, command_line(tmp_path / "crawl") as line:
        everyone = b"\n".join(fingers.root.encode() + user for user in users)
        fingers.plans |= dict.fromkeys(users, everyone)
        line.crawl((fingers.root + "ann",), *OWN, "crawl.commit_s=0.1", "crawl.concurrency=2", config=str(shown))
        for moment in (10, 30):
            until(lambda: len(fingers.asked) >= moment)  # noqa: B023 - called at once
            line.kill_child()
        assert line.wait() == 0, line.errors.read_text()
    found = rows(tmp_path / "crawl/pages")
    assert Counter(str(row["url"]) for row in found) == Counter(fingers.root + user.decode() for user in users)
    assert {row["outcome"] for row in found} == {"fetched"}
    assert fingers.asked.total() <= len(users) + 2 * 20


def test_the_example_keeps_the_promises_of_its_port(shown: Path) -> None:
    with Fingers().serving() as fingers:
        fingers.plans |= {b"ann": b"a plan\n", b"big": b"0123456789" * 10_000}
        served = {f"{fingers.root}{user}": fingers.plans[user.encode()] for user in ("ann", "big")}

        def made() -> ProtocolModule:
            name = f"{shown.parent}/finger_module.py:Finger"
            return cast("ProtocolModule", build(name, "key", options=FetchOptions(), agent="a", clock=FakeClock()))

        asyncio.run(check_protocol_module(made, served))


def test_addresses_of_an_added_scheme_are_one_by_the_generic_syntax() -> None:
    namer = Namer(added={"finger": 79})

    def named(text: str) -> Url:
        url = namer.name(text)
        assert url is not None, text
        return url

    same = ["finger://h.test/", "finger://H.test/", "finger://h.test:79/", "finger://h.test", "finger://u:p@h.test"]
    assert {named(text).key for text in same} == {"finger://h.test/"}
    assert {named(text).text for text in same} == {"finger://h.test/"}
    assert {named(text).host for text in same} == {"h.test"}
    assert named("finger://h.test?q").key == "finger://h.test/?q"
    assert [namer.port(named(text)) for text in ("finger://h.test/", "finger://h.test:7979/")] == [79, 7979]
    assert named("finger://h.test:7979/x").origin == "finger://h.test:7979"
    assert namer.port(named("finger://[::1]/")) == 79
    assert [namer.port(named(text)) for text in ("http://h/", "https://h:8/", "gopher://h/")] == [80, 8, 70]
    assert Namer().name("finger://h.test/") is None
    roots = Roots("host")
    roots.add_seed(named("finger://h.test:79/ann"))
    assert roots.contains(named("finger://H.TEST/bob"))
    assert not roots.contains(named("finger://h.test:8079/bob"))


@pytest.mark.parametrize(
    ("sets", "says"),
    [
        (("scope.schemes=['fingr']", "components.protocols={finger='a:B'}"), "scope.schemes: .*did you mean finger"),
        (("scope.schemes=['xyz']",), "known are http, .*and those that components.protocols adds"),
        (("components.protocols={'Finger'='a:B'}",), "'Finger' is no scheme"),
        (("components.protocols={'httpx'='a:B'}",), "begins with 'http'"),
    ],
)
def test_a_scheme_without_a_module_is_refused_in_one_line(sets: tuple[str, ...], says: str) -> None:
    with pytest.raises(ConfigError, match=says) as refused:
        configure(sets=sets, seeds=["http://h.test/"], options={"allow_private": True})
    assert "\n" not in str(refused.value)


def test_a_module_of_a_new_scheme_says_its_port(tmp_path: Path) -> None:
    (tmp_path / "portless.py").write_text("class Portless: pass\n")
    sets = (f"components.protocols={{ finger = '{tmp_path}/portless.py:Portless' }}", "scope.schemes=['finger']")
    with pytest.raises(ConfigError, match=r"components\.protocols\.finger: .*Portless has no default_port; give it"):
        crawl(("finger://localhost:1/",), tmp_path / "crawl", *sets)


def test_a_scheme_with_robots_obeys_them(shown: Path, tmp_path: Path) -> None:
    module = shown.parent / "finger_module.py"
    module.write_text(module.read_text().replace("default_port = 79", "default_port = 79\n    has_robots = True"))
    with Fingers().serving() as fingers:
        fingers.plans[b"robots.txt"] = b"User-agent: *\nDisallow: /bob\n"
        fingers.plans[b"ann"] = f"{fingers.root}bob {fingers.root}eve".encode()
        ours = crawled(shown, fingers, tmp_path / "crawl", "process.types={'text/plain'=['text_links']}")
        assert fingers.asked == Counter([b"robots.txt", b"ann", b"eve"])
    outcomes = {str(row["url"]).removeprefix(fingers.root): row["outcome"] for row in ours.rows}
    assert outcomes == {"ann": "fetched", "eve": "fetched", "bob": "robots_denied"}
