"""`gossamer forget`: no byte of a forgotten page is left in anything that a crawl keeps; all else is as it was."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from warcio.archiveiterator import ArchiveIterator

from gossamer import Crawler
from gossamer.api import forget_of, status_of, verify_of, why_of
from gossamer.api.search import search_of
from gossamer.config.gather import reopen
from gossamer.model.errors import ConfigError
from gossamer.results.export.bodies import ArchivedPage, RecordBodies, RecordPlace
from gossamer.stages.fetch.decoding import BoundedDecoder
from tests import commands
from tests.results.forget import marks
from tests.results.forget.crawls import AGAIN, BATCH, crawled, payloads, resumed
from tests.results.forget.site import GONE, KEPT, MARKS, SHARED, Site
from tests.ring.crawls import rows
from tests.stages.archive import strict

pytestmark = [
    pytest.mark.promise(
        "Files and exports",
        "`gossamer forget` leaves no payload, header, text or row of a forgotten page in WARC files, tables, index, "
        "search index, store, logs, checkpoints, exports in the crawl's directory, or an object store; kept copies "
        "keep their payload, and all else is as it was.",
    ),
    pytest.mark.promise(
        "What is fetched",
        "A forgotten page is not fetched again until its date, by no later run of the crawl or of one "
        "that shares its list.",
    ),
]


@dataclass(frozen=True)
class Begun:
    site: Site
    continuous: Path
    """A crawl with revisits and versions."""
    stopped: Path
    """A crawl with a queue."""


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Begun]:
    site = Site()
    with site.serving():
        one, two = tmp_path_factory.mktemp("continuous"), tmp_path_factory.mktemp("stopped")
        crawled(site, one, *AGAIN, max_pages=150)
        pages = 9
        crawled(site, two, *BATCH, max_pages=pages)
        # On a busy machine the first host can fill it; the other one's home page has the links that stay.
        while all(row["url"] != site.url(f"{KEPT}/") for row in rows(two / "crawl/pages")):
            pages += 1
            resumed(two / "crawl", f"limits.max_pages={pages}")
        yield Begun(site, one / "crawl", two / "crawl")


@pytest.fixture
def crawl(begun: Begun, tmp_path: Path) -> Path:
    return Path(shutil.copytree(begun.continuous, tmp_path / "crawl"))


@pytest.fixture
def stopped(begun: Begun, tmp_path: Path) -> Path:
    return Path(shutil.copytree(begun.stopped, tmp_path / "stopped"))


def left(directory: Path) -> list[str]:
    return marks.found(directory, MARKS) + marks.found_in_stores(directory, MARKS)


def damage(directory: Path) -> list[str]:
    return [one.says() for one in verify_of(directory, deep=True).damage]


def test_the_marks_are_everywhere_before(crawl: Path) -> None:
    """What later finds nothing finds them all now, in every kind of file."""
    found = marks.found(crawl, MARKS)
    assert {mark for mark in MARKS if any(mark in one for one in found)} == set(MARKS)
    assert {one.partition("/")[0] for one in found} >= {"links", "pages", "search", "warc"}
    assert len(marks.found_in_stores(crawl, MARKS)) == 3, "robots.txt, a document about the use of the site, a cookie"


def test_no_byte_of_a_forgotten_host_is_left(crawl: Path, begun: Begun) -> None:
    assert 304 in [
        row["status"] for row in rows(crawl / "pages") if row["url"] == begun.site.url(f"{KEPT}/shared.html")
    ]
    before = {(row["url"], row["fetched_at"]): row for row in rows(crawl / "pages")}
    kept_payloads = {at: body for at, body in payloads(crawl).items() if GONE not in at[0]}
    status, out, err = commands.run("forget", str(crawl), GONE, "--reason", "a letter", "--for", "A. Owner", "--quiet")
    assert (status, err) == (0, "")
    assert "removed 11 pages" in out
    assert left(crawl) == []
    assert damage(crawl) == []
    assert strict.faults(sorted((crawl / "warc").iterdir()), forgotten=True) == []
    after = rows(crawl / "pages")
    assert {row["host"] for row in after} == {KEPT, "third.test"}
    assert {(row["url"], row["fetched_at"]) for row in after} == {
        at for at, row in before.items() if row["host"] != GONE
    }
    assert not [row for row in rows(crawl / "links") if GONE in str(row["from_url"])]
    assert [row for row in rows(crawl / "links") if GONE in str(row["to_url"])], "mentions stay"
    found = payloads(crawl)
    assert found.items() >= kept_payloads.items()
    shared = {url: body for (url, _), body in found.items() if "shared" in url}
    assert set(shared.values()) == {SHARED.encode()}
    large = [body for (url, _), body in found.items() if "large.bin" in url]
    assert large == [begun.site.pages[f"{KEPT}/large.bin"]]


def test_other_readers_read_all_that_is_left(crawl: Path) -> None:
    forget_of(crawl, GONE)
    addresses = []
    for path in sorted((crawl / "warc").iterdir()):
        with path.open("rb") as file:
            addresses += [record.rec_headers.get_header("WARC-Target-URI") for record in ArchiveIterator(file)]
    assert addresses.count(None) > 60, "tombstones name no address"
    assert not [address for address in addresses if address and GONE in address]
    with duckdb.connect() as database:
        for table in ("pages", "links", "epochs"):
            count = database.execute(f"SELECT count(*) FROM '{crawl / table}/*.parquet'").fetchone()
            assert count is not None
            assert count[0] > 0
    assert search_of(crawl, "kept").total == 16
    assert search_of(crawl, MARKS[1]).total == 0
    config = reopen(crawl / "crawl.toml")
    copies = [row for row in rows(crawl / "pages") if "/shared" in str(row["url"]) and row["status"] == 200]
    with RecordBodies(crawl / "warc", BoundedDecoder(config.fetch).decode) as bodies:
        places = [
            RecordPlace(str(r["warc_file"]), int(str(r["warc_offset"])), int(str(r["warc_length"]))) for r in copies
        ]
        read = [bodies.page(ArchivedPage(place)) for place in places]
    assert [page.body for page in read if page] == [SHARED.encode()], "one copy has the payload, the others refer to it"


def test_single_pages_go_and_their_host_stays(crawl: Path) -> None:
    forget_of(crawl, "http://gone.test:*/secret-*")
    urls = {str(row["url"]).rpartition("/")[2] for row in rows(crawl / "pages") if row["host"] == GONE}
    assert urls == {"", "shared.html", "large.bin", "near.html", "alone.bin"}
    assert [one for one in left(crawl) if MARKS[5] in one] == [], "the versions were of one of these pages"
    assert damage(crawl) == []
    version_before_all = [one for one in left(crawl) if MARKS[6] in one]
    assert version_before_all, "what was not meant is there"


def test_a_forgotten_page_is_not_fetched_again_until_its_date(stopped: Path, begun: Begun) -> None:
    forget_of(stopped, GONE, until="2090-05-01", reason="a letter")
    begun.site.asked.clear()
    assert resumed(stopped, "limits.max_pages=none").end == "finished"
    assert [name for name in begun.site.asked if name.startswith(GONE)] == []
    assert any(name.startswith(KEPT) for name in begun.site.asked), "the crawl goes on"
    assert left(stopped) == []
    assert damage(stopped) == []
    why = why_of(stopped, begun.site.url(f"{GONE}/secret-1.html"))
    assert (why["state"], why["rule"]) == ("forgotten", "forgotten")
    assert str(why["reason"]).endswith("reason: a letter, until 2090-05-01")
    status = status_of(stopped)
    assert status["queued"] == 0


@pytest.mark.heavy
@pytest.mark.parametrize("past", [False, True])
def test_a_seed_of_a_forgotten_page_waits_for_the_date(crawl: Path, begun: Begun, past: bool) -> None:
    forget_of(crawl, GONE, until="2090-05-01")
    listed = crawl / "forgotten.jsonl"
    if past:
        listed.write_text(listed.read_text().replace("2090-05-01", "2020-05-01"))
    begun.site.asked.clear()
    asyncio.run(_seeded(crawl, begun.site.url(f"{GONE}/secret-1.html")))
    assert ([name for name in begun.site.asked if name.startswith(GONE)] != []) is past


async def _seeded(directory: Path, url: str) -> None:
    """Continue a crawl for some pages, with one seed more."""
    crawler = Crawler.resume(directory, config=reopen(directory / "crawl.toml", sets=("limits.max_pages=200",)))
    async with asyncio.TaskGroup() as group:
        running = group.create_task(crawler.run())
        while not (await crawler.ask({"verb": "seed", "urls": [url]}))["ok"]:  # noqa: ASYNC110 - until it answers
            await asyncio.sleep(0.01)
        assert await running == "limit"


def test_a_continuous_crawl_goes_on_without_them(crawl: Path, begun: Begun) -> None:
    forget_of(crawl, GONE)
    begun.site.asked.clear()
    assert resumed(crawl, "limits.max_pages=200").end == "limit"
    assert [name for name in begun.site.asked if name.startswith(GONE)] == []
    assert left(crawl) == []
    assert damage(crawl) == []
    assert strict.faults(sorted((crawl / "warc").iterdir()), forgotten=True) == [], (
        "new revisits refer to records that are there"
    )


def test_crawls_share_a_list(stopped: Path, crawl: Path, begun: Begun, tmp_path: Path) -> None:
    shared = tmp_path / "shared.jsonl"
    settings = stopped / "crawl.toml"
    settings.write_text(settings.read_text().replace('forgotten_file = ""', f'forgotten_file = "{shared}"'))
    forget_of(stopped, GONE, reason="a letter")
    assert shared.read_text() == (stopped / "forgotten.jsonl").read_text()
    begun.site.asked.clear()
    assert resumed(crawl, f"scope.forgotten_file='{shared}'", "limits.max_pages=170").end == "limit"
    assert [name for name in begun.site.asked if name.startswith(GONE)] == []


def segment(crawl: Path, target: Path) -> list[str]:
    assert commands.run("segment", "build", str(crawl), "-o", str(target), "--quiet")[0] == 0
    return list(pq.read_table(target)["url"].to_pylist())


def test_a_segment_for_another_crawl_names_none_of_them(stopped: Path, begun: Begun, tmp_path: Path) -> None:
    before = segment(stopped, tmp_path / "before.parquet")
    forget_of(stopped, GONE)
    kept = [url for url in before if GONE not in url]
    assert kept
    assert len(kept) < len(before), "there was something to forget"
    assert segment(stopped, tmp_path / "after.parquet") == kept


def test_the_log_says_what_was_done_and_names_no_page(crawl: Path, begun: Begun) -> None:
    forget_of(crawl, "secret-[0-9]", until="2090-01-01", reason='a "letter" # 7', whom="A. Owner")
    [entry] = [json.loads(line) for line in (crawl / "forgotten.jsonl").read_text().splitlines()]
    assert entry.pop("at").startswith("20")
    assert entry == {
        "pattern": "secret-[0-9]", "until": "2090-01-01T00:00:00+00:00", "reason": 'a "letter" # 7',
        "for": "A. Owner", "removed": entry["removed"],
    }  # fmt: skip
    assert entry["removed"]["pages"] == 6
    assert entry["removed"]["rows"] > 6, "several versions"
    assert "secret-1" not in (crawl / "forgotten.jsonl").read_text()
    assert resumed(crawl, "limits.max_pages=155").end == "limit", "the list is read"


@pytest.mark.heavy
def test_exports_in_the_directory_go_and_others_are_named(crawl: Path, tmp_path: Path) -> None:
    for form, name in (
        ("jsonl", "pages.jsonl"),
        ("wacz", "all.wacz"),
        ("markdown", "texts"),
        ("parquet", "copy.parquet"),
        ("datasets", "dataset"),
        ("bulk", "bodies"),
        ("mirror", "site"),
    ):
        assert commands.run("export", str(crawl), "--to", form, "-o", str(crawl / name))[0] == 0
    assert commands.run("rank", str(crawl))[0] == 0
    for name in ("notes.txt", "notes.md"):
        (crawl / name).write_text("mine")
    extracted = crawl / "items/book/extracted.parquet"
    extracted.parent.mkdir(parents=True)
    pq.write_table(pa.table({"url": ["http://gone.test/"], "title": [MARKS[0]]}), extracted)
    status, out, _ = commands.run("forget", str(crawl), GONE, "--quiet")
    assert status == 0
    assert not extracted.exists()
    for name in ("pages.jsonl", "all.wacz", "texts", "copy.parquet", "dataset", "bodies", "site", "ranks.bin"):
        assert not (crawl / name).exists()
        assert f"{crawl / name} is removed" in out
    for name in ("notes.txt", "notes.md"):
        assert (crawl / name).read_text() == "mine"
        assert f"{crawl / name} was not touched" in out
    assert left(crawl) == []


@pytest.mark.parametrize("damaged", ["*.store", "*.idx", "meta.json", "without meta.json"])
def test_a_damaged_index_is_removed_with_what_it_holds(crawl: Path, damaged: str) -> None:
    [file, *_] = sorted((crawl / "search").glob(damaged.removeprefix("without ")))
    data = file.read_bytes()
    if damaged.startswith("without"):
        file.unlink()
        assert "search/meta.json is missing" in commands.run("verify", str(crawl))[1]
    else:
        file.write_bytes(data[:10] if damaged == "*.store" else data[:-20] + bytes(20))
    status, out, _ = commands.run("forget", str(crawl), GONE, "--quiet")
    assert status == 0
    assert f"{crawl / 'search'} is removed; the command that made it makes another" in out
    assert left(crawl) == []
    assert list((crawl / "search").iterdir()) == []


def test_a_dry_run_counts_and_changes_nothing(crawl: Path) -> None:
    def state() -> dict[str, tuple[int, bytes]]:
        files = [path for folder in ("warc", "pages", "links", "search") for path in (crawl / folder).iterdir()]
        return {path.name: (path.stat().st_mtime_ns, path.read_bytes()) for path in files if path.is_file()}

    before = state()
    status, out, _ = commands.run("forget", str(crawl), GONE, "--dry-run")
    assert status == 0
    assert f"To forget {GONE} would remove 11 pages with" in out
    assert state() == before
    assert not (crawl / "forgotten.jsonl").exists()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("nowhere.test",), "no page of .* matches nowhere.test: nothing was forgotten"),
        (("*.test",), "every page of .* matches .*; add --all if that is meant"),
        (("(",), "is not a regular expression"),
        ((GONE, "--until", "soon"), "--until soon: expected a date"),
        ((GONE, "--until", "2001-01-01"), "that is past"),
    ],
)
def test_a_mistake_is_one_line_and_changes_nothing(stopped: Path, arguments: tuple[str, ...], says: str) -> None:
    pattern, *options = arguments
    pattern = r"\.test" if pattern == "*.test" else pattern
    status, out, err = commands.run("forget", str(stopped), pattern, *options)
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
    assert re.search(says, err)
    assert not (stopped / "state/forget.json").exists()


@pytest.mark.heavy
def test_everything_goes_where_that_is_meant(stopped: Path) -> None:
    forget_of(stopped, r"\.test", everything=True)
    assert rows(stopped / "pages") == []
    assert left(stopped) == []
    assert damage(stopped) == []


def test_what_was_forgotten_can_be_forgotten_for_longer(stopped: Path) -> None:
    forget_of(stopped, GONE, until="2090-01-01")
    forget_of(stopped, GONE, until="2090-01-01")
    assert len((stopped / "forgotten.jsonl").read_text().splitlines()) == 1, "the same again"
    forget_of(stopped, GONE, until="2095-01-01")
    assert len((stopped / "forgotten.jsonl").read_text().splitlines()) == 2


def test_while_it_is_unfinished_every_command_says_so(stopped: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("gossamer.results.forget.tables.remove", fail)
        with pytest.raises(OSError, match="No space left"):
            forget_of(stopped, GONE)
    says = f"the removal of {GONE} was interrupted; `gossamer forget {stopped} '{GONE}'` finishes it"
    assert any(says in note for note in verify_of(stopped).notes)
    assert says in str(status_of(stopped)["warnings"])
    with pytest.raises(ConfigError, match="was interrupted"):
        resumed(stopped)
    with pytest.raises(ConfigError, match="was interrupted"):
        forget_of(stopped, "third.test")
    forget_of(stopped, GONE)
    assert left(stopped) == []
    assert damage(stopped) == []
    assert status_of(stopped)["warnings"] == []
