"""Continuous crawls of a small site that changes under them, in real time: what is asked, kept and told."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from warcio.archiveiterator import ArchiveIterator

from gossamer import Crawler
from gossamer.api.reading import changes, instant_of
from gossamer.api.search import build_index_of, search_of
from gossamer.api.status import status_of, why_of
from gossamer.assembly.revisits import frontier_options_of, politeness_for_mode
from gossamer.cli.main import status_of_command
from gossamer.config import configure
from gossamer.config.gather import reopen
from gossamer.features.revisit.revisiting import SLICE
from gossamer.model.errors import ConfigError
from gossamer.results.export.changes import PageChange
from gossamer.stages.archive.options import SearchOptions
from gossamer.stages.frontier.options import politeness
from tests.answering import free_port
from tests.ring.crawls import OWN, rows

QUICK = (
    *OWN,
    "crawl.mode='continuous'",
    "revisit.interval_s_mean=0.5",
    "revisit.interval_s_min=0.2",
    "revisit.interval_s_max=1.0",
    "revisit.failed_s_first=0.3",
    "robots.obey=false",
)


@dataclass
class Site:
    """Pages by path, each with its body and whether it has a tag; what is not there is 404."""

    pages: dict[str, bytes]
    tagged: frozenset[str] = frozenset()
    asked: list[tuple[str, dict[str, str], int]] = field(default_factory=list)
    """Path, headers, and the status that was answered."""
    port: int = 0

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                lines = head.decode().split("\r\n")
                path = lines[0].split()[1]
                headers = {name.lower(): value.strip() for name, _, value in (one.partition(":") for one in lines[1:])}
                writer.write(self.reply(path, headers))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    def reply(self, path: str, headers: dict[str, str]) -> bytes:
        body = self.pages.get(path)
        status = 200 if body is not None else 404
        body = body if body is not None else b"gone"
        tag = f'"{hashlib.md5(body).hexdigest()}"' if path in self.tagged and status == 200 else ""
        if tag and headers.get("if-none-match") == tag:
            status, body = 304, b""
        self.asked.append((path, headers, status))
        words = {200: "OK", 304: "Not Modified", 404: "Not Found"}[status]
        fields = f"ETag: {tag}\r\n" if tag else ""
        fields += f"Content-Length: {len(body)}\r\n" if status != 304 else ""
        return f"HTTP/1.1 {status} {words}\r\nContent-Type: text/html\r\n{fields}\r\n".encode() + body

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@dataclass
class Moving(Site):
    """A site that moves to another host when `moved` is set."""

    moved: bool = False

    def reply(self, path: str, headers: dict[str, str]) -> bytes:
        if self.moved and headers["host"].startswith("site."):
            there = f"http://www.site.test:{self.port}{path}"
            return f"HTTP/1.1 301 Moved\r\nLocation: {there}\r\nContent-Length: 0\r\n\r\n".encode()
        return super().reply(path, headers)

    @property
    def origin(self) -> str:
        return f"http://site.test:{self.port}"


def page(words: str, *links: str) -> bytes:
    anchors = "".join(f'<p><a href="{link}">{link.strip("/")}</a></p>' for link in links)
    return f"<!doctype html><title>t</title><p>{words}</p>{anchors}".encode()


def crawl(
    site: Site, directory: Path, visits: int, *sets: str, turn: Callable[[], None] | None = None, resuming: bool = False
) -> None:
    """Crawl until each page was requested that often; then, where `turn` changes the site, the same once more."""

    async def visit_all() -> None:
        begun = len(site.asked)
        known = {path for path, _, _ in site.asked}

        def is_done() -> bool:
            counts = Counter(path for path, _, _ in site.asked[begun:])
            return all(counts[path] >= (visits if path in site.pages else 1) for path in known | site.pages.keys())

        while not is_done():  # noqa: ASYNC110 - the crawl comes by itself
            await asyncio.sleep(0.02)

    async def run() -> None:
        server = await asyncio.start_server(site.answer, "127.0.0.1", site.port)
        site.port = server.sockets[0].getsockname()[1]
        if resuming:
            crawler = Crawler.resume(directory, config=reopen(directory / "crawl.toml", sets=sets))
        else:
            config = configure(options={"allow_private": True}, sets=(*QUICK, *sets), seeds=(f"{site.origin}/",))
            crawler = Crawler(output=directory, config=config)
        async with asyncio.timeout(100), asyncio.TaskGroup() as group:
            task = group.create_task(crawler.run())
            await visit_all()
            if turn is not None:
                turn()
                await visit_all()
            crawler.stop()
            assert await task == "stopped", "a continuous crawl does not end by itself"
        server.close()

    asyncio.run(run())


def crawl_once(site: Site, directory: Path, *sets: str) -> None:
    """Crawl each page once, in a batch crawl."""

    async def batch() -> None:
        server = await asyncio.start_server(site.answer, "127.0.0.1", site.port)
        site.port = server.sockets[0].getsockname()[1]
        given = (*OWN, "robots.obey=false", *sets)
        config = configure(options={"allow_private": True}, sets=given, seeds=(f"{site.origin}/",))
        assert await Crawler(output=directory, config=config).run() == "finished"
        server.close()

    asyncio.run(batch())


def told(site: Site, directory: Path, since: str = "") -> Counter[tuple[str, str]]:
    return Counter((one.change, one.url.removeprefix(site.origin)) for one in changes(directory, since))


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> tuple[Site, Path]:
    """A site of which one page changes its words, one its digits, one goes, and one comes."""
    site = Site(
        {
            "/": page("the front of this site", "/same", "/untagged", "/words", "/digits", "/going"),
            "/same": page("always the same"),
            "/untagged": page("the same, and no tag to say so"),
            "/words": page("these words are the first"),
            "/digits": page("visitors so far: 1001"),
            "/going": page("here today"),
        },
        frozenset(("/", "/same", "/words", "/digits", "/going")),
    )

    def turn() -> None:
        del site.pages["/going"]
        site.pages["/words"] = page("those phrases came second")
        site.pages["/digits"] = page("visitors so far: 1002")
        site.pages["/"] = page("the front of this site", "/same", "/untagged", "/words", "/digits", "/coming")
        site.pages["/coming"] = page("here from now on")

    directory = tmp_path_factory.mktemp("revisits") / "crawl"
    crawl(site, directory, 3, turn=turn)
    return site, directory


def test_changes_are_reported_once_each(lived: tuple[Site, Path]) -> None:
    site, directory = lived
    found = told(site, directory)
    appeared = {path for change, path in found if change == "appeared"}
    assert appeared == {"/", "/same", "/untagged", "/words", "/digits", "/going", "/coming"}
    assert set(found.values()) == {1}
    assert {path for change, path in found if change == "vanished"} == {"/going"}
    # The front has another link text: that is a change of its words too. Digits are none.
    assert {path for change, path in found if change == "changed"} == {"/", "/words"}


@pytest.mark.promise("Continuous crawls", "Requests are conditional, so that unchanged pages are not sent again.")
def test_requests_are_conditional_and_unchanged_pages_cost_a_head(lived: tuple[Site, Path]) -> None:
    site, directory = lived
    same = [(headers, status) for path, headers, status in site.asked if path == "/same"]
    assert len(same) >= 4
    assert "if-none-match" not in same[0][0]
    assert same[0][1] == 200
    assert all("if-none-match" in headers and status == 304 for headers, status in same[1:])
    untagged = [headers for path, headers, _ in site.asked if path == "/untagged"]
    assert all("if-none-match" not in headers and "if-modified-since" not in headers for headers in untagged)
    table = [row for row in rows(directory / "pages") if str(row["url"]).endswith(("/same", "/untagged"))]
    by_page = {path: [row for row in table if str(row["url"]).endswith(path)] for path in ("/same", "/untagged")}
    assert {row["outcome"] for row in by_page["/same"][1:]} == {"not_modified"}
    assert {row["warc_type"] for row in by_page["/untagged"][1:]} == {"revisit"}
    assert len({row["digest"] for row in by_page["/same"]}) == 1, "a row that was not modified has what stands"
    assert all(row["duplicate_of"] == "" for row in table), "nobody is a copy of himself"


def test_a_page_of_which_only_a_part_came_is_never_requested_conditionally(tmp_path: Path) -> None:
    """A 304 would confirm a page that the crawl does not have."""
    pages = {"/": page("the front of this site", "/long"), "/long": page("word " * 3_000)}
    site = Site(pages, frozenset(pages))
    crawl(site, tmp_path / "crawl", 3, "fetch.body_bytes_max=4000")
    conditional = {path: set() for path in pages}
    for path, headers, _ in site.asked:
        conditional.setdefault(path, set()).add("if-none-match" in headers)
    assert conditional["/"] == {False, True}
    assert [status for path, _, status in site.asked if path == "/long"][2:], "it is visited again and again"
    assert conditional["/long"] == {False}


@pytest.mark.promise("Continuous crawls", "A revisit record refers to the response that holds the content.")
def test_revisit_records_refer_to_the_response_that_stands(lived: tuple[Site, Path]) -> None:
    _, directory = lived
    profiles: Counter[str] = Counter()
    responses: dict[tuple[str, str], str] = {}
    for file in sorted((directory / "warc").glob("*.warc.gz")):
        with file.open("rb") as stream:
            for record in ArchiveIterator(stream):
                fields = record.rec_headers
                uri, date = fields.get_header("WARC-Target-URI"), fields.get_header("WARC-Date")
                if record.rec_type == "response":
                    responses[uri, date] = fields.get_header("WARC-Record-ID")
                if record.rec_type == "revisit":
                    to = fields.get_header("WARC-Refers-To-Target-URI"), fields.get_header("WARC-Refers-To-Date")
                    assert responses[to] == fields.get_header("WARC-Refers-To")
                    assert to[0] == uri
                    profiles[fields.get_header("WARC-Profile").rpartition("/")[2]] += 1
                    latest = max(one for other, one in responses if other == uri)
                    assert to[1] == latest or profiles["identical-payload-digest"], "304 is of the last version"
    assert profiles["server-not-modified"] >= 8
    assert profiles["identical-payload-digest"] >= 2


def test_versions_of_a_page_are_listed_with_their_records(lived: tuple[Site, Path]) -> None:
    site, directory = lived
    found: list[PageChange] = list(changes(directory, url=f"{site.origin}/words"))
    kinds = [one.change for one in found]
    assert kinds[0] == "appeared"
    assert kinds.count("changed") == 1
    assert set(kinds) == {"appeared", "same", "changed"}
    bodies = {one.digest for one in found}
    assert len(bodies) == 2
    changed = found[kinds.index("changed")]
    with (directory / "warc" / changed.warc_file).open("rb") as stream:
        stream.seek(changed.warc_offset or 0)
        record = next(iter(ArchiveIterator(stream)))
        assert b"came second" in record.content_stream().read()


def test_why_and_status_tell_of_the_past_and_of_what_is_due(lived: tuple[Site, Path]) -> None:
    site, directory = lived
    story = why_of(directory, f"{site.origin}/words")
    revisits, recent = story["revisits"], story["recent_visits"]
    assert isinstance(revisits, dict)
    assert isinstance(recent, list)
    assert revisits["changes"] == 1
    assert any(line.endswith(" changed") for line in recent)
    assert str(story["next_due"]) > str(story["fetched_at"])
    status = status_of(directory)
    assert status["state"] == "stopped"
    assert status["mode"] == "continuous"
    facts = status["revisits"]
    assert isinstance(facts, dict)
    assert facts["pages"] + facts["given_up"] == 7
    assert 0.3 < facts["expected_freshness"] <= 1.0
    assert facts["changes_seen"] == 2
    assert status["discovered"] == 7


@pytest.mark.promise(
    "Continuous crawls",
    "Text, Markdown and index follow what changes; pages that their server reports as unchanged add nothing to them.",
)
def test_text_and_index_follow_the_pages(tmp_path: Path) -> None:
    assert SearchOptions().commit_s <= 5.0, "what is promised of an index whose options are as they came"
    words = " ".join(f"The {number}th sentence of a page is long enough to be its text." for number in range(40))
    gone = page(f"{words} Hail is over.")
    pages = {"/": page(words, "/words", "/gone"), "/words": page(f"{words} Snow fell."), "/gone": gone}
    site = Site(pages, frozenset(pages))

    def turn() -> None:
        del site.pages["/gone"]
        site.pages["/words"] = page(f"{words} Rain came.")

    sets = ("search.enabled=true", "search.commit_s=0.2", "process.modules=['main_text', 'markdown']")
    crawl(site, tmp_path / "crawl", 3, *sets, turn=turn)
    found = rows(tmp_path / "crawl/pages")
    written = Counter((row["change"], bool(row["main_text"]), bool(row["markdown"])) for row in found)
    assert written.pop(("same", False, False)) > 6
    assert written.pop(("vanished", False, False)) == 1
    written.pop(("", False, False), 0)  # It is looked for again.
    assert written == {("appeared", True, True): 3, ("changed", True, True): 1}
    assert search_of(tmp_path / "crawl", "rain").total == 1
    assert search_of(tmp_path / "crawl", "snow").total == 0
    for _ in range(2):
        assert search_of(tmp_path / "crawl", "sentence").total == 2
        assert search_of(tmp_path / "crawl", "hail").total == 0
        build_index_of(tmp_path / "crawl")


def test_the_commands_print_what_the_functions_return(
    lived: tuple[Site, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    site, directory = lived
    assert status_of_command(["changes", str(directory), "--json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(one["change"], one["url"]) for one in lines] == [(one.change, one.url) for one in changes(directory)]
    assert {one["compared"] for one in lines} == {"words"}
    assert [one["at"] for one in lines] == sorted(one["at"] for one in lines)
    assert status_of_command(["changes", str(directory), "--url", f"{site.origin}/words"]) == 0
    assert "same" in capsys.readouterr().out
    assert status_of_command(["status", str(directory)]) == 0
    assert "freshness" in capsys.readouterr().out
    assert status_of_command(["changes", str(directory), "--since", "1s"]) == 0
    nothing = capsys.readouterr()
    assert nothing.out == ""
    assert (
        "Edits of digits, case or markup alone are not listed, except in fields of items (revisit.change=words)"
        in nothing.err
    )
    assert f"gossamer resume {directory} --set revisit.change=text" in nothing.err
    assert status_of_command(["changes", str(directory), "--since", "soon"]) == 2
    assert "12h" in capsys.readouterr().err
    assert status_of_command(["changes", str(directory / "nowhere")]) == 2


@pytest.mark.heavy
def test_a_batch_crawl_goes_on_as_a_continuous_one(tmp_path: Path) -> None:
    more = {f"/more/{number}": page(f"page {number}") for number in range(SLICE + 20)}
    site = Site({"/": page("the front", "/a", "/b", *more), "/a": page("a page"), "/b": page("another"), **more})
    site.tagged = frozenset(("/a", *more))
    directory = tmp_path / "crawl"

    crawl_once(site, directory)
    assert len(site.asked) == len(site.pages)
    assert status_of(directory)["revisits"] is None
    assert told(site, directory) == Counter({("appeared", path): 1 for path in site.pages})

    def turn() -> None:
        site.pages["/b"] = page("something else now")

    crawl(site, directory, 1, *QUICK, turn=turn, resuming=True)
    asked = Counter(path for path, _, _ in site.asked)
    assert set(asked) == set(site.pages)
    assert min(asked.values()) >= 2, "every page has its due time, of whichever slice"
    assert min(asked["/"], asked["/a"], asked["/b"]) >= 3
    assert ("changed", "/b") in told(site, directory)
    assert told(site, directory)["appeared", "/a"] == 1
    assert {status for path, _, status in site.asked if path == "/a"} == {200, 304}
    status = status_of(directory)
    assert status["discovered"] == status["terminal"] == len(site.pages)
    # There is no way back: the pages' due times would be lost.
    config = reopen(directory / "crawl.toml", sets=("crawl.mode='batch'",))
    with pytest.raises(ConfigError, match="stays so"):
        asyncio.run(Crawler.resume(directory, config=config).run())


@pytest.mark.timeout(900)
def test_pages_that_changed_between_a_batch_crawl_and_its_first_visits_are_listed(tmp_path: Path) -> None:
    site = Site({"/": page("the front", "/a", "/b"), "/a": page("a page"), "/b": page("another")})
    crawl_once(site, tmp_path / "crawl")
    site.pages["/b"] = page("something else now")
    crawl(site, tmp_path / "crawl", 1, *QUICK, resuming=True)
    assert told(site, tmp_path / "crawl") == Counter(
        {("appeared", "/"): 1, ("appeared", "/a"): 1, ("appeared", "/b"): 1, ("changed", "/b"): 1}
    )


@pytest.mark.parametrize("begins_as_batch", [False, True])
def test_a_site_that_moves_to_www_stays_in_the_crawl(tmp_path: Path, *, begins_as_batch: bool) -> None:
    site = Moving({"/": page("front", "/a"), "/a": page("a")})
    directory = tmp_path / "crawl"
    (tmp_path / "hosts").write_text("127.0.0.1 site.test www.site.test\n")
    hosts = f"resolve.hosts_file='{tmp_path / 'hosts'}'"

    def turn() -> None:
        site.moved = True
        site.pages["/a"] = page("a", "/new")
        site.pages["/new"] = page("new")

    if begins_as_batch:
        crawl_once(site, directory, hosts)
    crawl(site, directory, 2, *(QUICK if begins_as_batch else ()), hosts, turn=turn, resuming=begins_as_batch)
    assert any(path == "/new" and headers["host"].startswith("www.") for path, headers, _ in site.asked)


@pytest.mark.timeout(900)
def test_outlinks_of_a_batch_crawl_stay_outlinks(tmp_path: Path) -> None:
    site = Moving({"/": page("front"), "/out": page("out", "/further")})
    directory = tmp_path / "crawl"
    (tmp_path / "hosts").write_text("127.0.0.1 site.test out.test\n")
    sets = ("scope.outlinks=true", f"resolve.hosts_file='{tmp_path / 'hosts'}'")
    site.port = free_port()
    site.pages["/"] = page("front", f"http://out.test:{site.port}/out")
    crawl_once(site, directory, *sets)
    crawl(site, directory, 2, *QUICK, *sets, resuming=True)
    assert {path for path, _, _ in site.asked} == {"/", "/out"}, "only the status of a page outside is requested"


def test_a_policy_of_ones_own_divides_the_visits(tmp_path: Path) -> None:
    documentation = (Path(__file__).parents[2] / "docs/explanation/revisits.md").read_text()
    (shown,) = re.findall(r"^```python\n(.*?)^```$", documentation, re.MULTILINE | re.DOTALL)
    (tmp_path / "mine.py").write_text(f"CALLS = []\n{shown}".replace("return", "CALLS.append(price)\n        return"))
    site = Site({"/": page("the front", "/a"), "/a": page("a page")})
    crawl(site, tmp_path / "crawl", 6, f"revisit.policy='{tmp_path / 'mine.py'}:ByRoot'")
    assert min(Counter(path for path, _, _ in site.asked).values()) >= 2
    (mine,) = [
        module for name, module in sys.modules.items() if getattr(module, "__file__", "") == str(tmp_path / "mine.py")
    ]
    assert len(mine.CALLS) > 10


@pytest.mark.parametrize(
    ("sets", "says"),
    [
        (("revisit.policy='best'",), "no policy 'best'"),
        (("revisit.policy='nowhere:Policy'",), "revisit.policy"),
        (("frontier.strategy='walk'",), "frontier.strategy = sweep"),
        (("revisit.max_age_s={'(' = 5.0}",), "("),
    ],
)
def test_mistakes_are_reported_before_anything_starts(tmp_path: Path, sets: tuple[str, ...], says: str) -> None:
    def begin() -> None:
        config = configure(options={"allow_private": True}, sets=(*QUICK, *sets), seeds=("http://127.0.0.1:9/",))
        asyncio.run(Crawler(output=tmp_path / "crawl", config=config).run())

    with pytest.raises(ConfigError) as refused:
        begin()
    assert says in str(refused.value)


def test_a_continuous_crawl_has_time_to_wait_where_a_batch_crawl_closes_the_host() -> None:
    seeds = ("http://127.0.0.1:9/",)
    batch = configure(options={"allow_private": True}, seeds=seeds)
    continuous = configure(options={"allow_private": True, "mode": "continuous"}, seeds=seeds)
    rules = politeness(batch.politeness)
    assert politeness_for_mode(rules, batch) == rules
    assert politeness_for_mode(rules, continuous).retry_after_s_max == 30 * 86_400
    assert politeness_for_mode(rules, continuous).crawl_delay_s_max == 30 * 86_400
    assert frontier_options_of(batch) == batch.frontier
    assert frontier_options_of(continuous).host_sleeps_max > 1_000_000
    assert frontier_options_of(continuous).host_sleep_s_max == 86_400


def test_times_are_read_as_people_write_them() -> None:
    assert instant_of("1970-01-02") == 86_400.0
    assert instant_of("1970-01-02T00:00:10+00:00") == 86_410.0
    assert instant_of("2h") == pytest.approx(instant_of("120m"), abs=5.0)
