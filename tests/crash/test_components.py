"""Components of another author's package (docs/how-to/components.md) in crawls that are killed and resumed."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pytest

from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.process import SimwebProcess
from tests.crash import brought
from tests.crash.crawls import Crawl, crawl_of
from tests.crash.harvest import Harvest, differences
from tests.crash.killing import killed, undisturbed

WEB = SimwebOptions.plain(hosts=6, pages=120, latency_s=0.05, bytes_median=3_000)
ENTRY_POINTS = {
    "prioritizer": "DeepFirst", "seen": "OwnUrlSeen", "resolver": "HostsFileResolver", "archive": "Addresses",
    "letters": "letters",
}  # fmt: skip
COMPONENTS = (
    "components.frontier=brought_by_others:LastFirst",
    "components.prioritizer=prioritizer",
    "components.url_seen=seen",
    "components.content_seen=brought_by_others:OwnContentSeen",
    "components.resolver=resolver",
    'components.filters=["brought_by_others:NineOfTen"]',
    'components.archives=["archive"]',
    'components.protocols={ http = "brought_by_others:CountingHttp" }',
    'process.modules=["letters", "brought_by_others:lines"]',
)
"""Half by entry points, half by module and name."""


@pytest.fixture
def marks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Install the package, and return where its components leave marks."""
    package, marks = tmp_path / "site", tmp_path / "used"
    information = package / "brought_by_others-1.0.dist-info"
    information.mkdir(parents=True)
    marks.mkdir()
    shutil.copy(brought.__file__, package / "brought_by_others.py")
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: brought-by-others\nVersion: 1.0\n")
    points = [f"{name} = brought_by_others:{place}\n" for name, place in ENTRY_POINTS.items()]
    (information / "entry_points.txt").write_text("[gossamer.components]\n" + "".join(points))
    monkeypatch.setenv("PYTHONPATH", str(package))
    monkeypatch.syspath_prepend(str(package))  # Commands also run in this process.
    monkeypatch.setenv("BROUGHT_USED", str(marks))
    return marks


@pytest.mark.heavy
@pytest.mark.promise("Components and Python", "Crawls with components of third parties survive kills and resume.")
@pytest.mark.long
def test_a_crawl_of_others_components_that_is_killed_ends_as_an_undisturbed_one(marks: Path, tmp_path: Path) -> None:
    calm, web = undisturbed(WEB, tmp_path / "calm", *COMPONENTS)
    assert (calm.status, calm.harvest.faults()) == (0, []), calm.crawl.complaints
    assert {path.name for path in marks.iterdir()} == {
        "frontier", "prioritizer", "filter", "url_seen", "url_seen_cut", "url_seen_close", "content_seen", "resolver",
        "resolver_close", "archive", "archive_close", "protocol", "protocol_close", "module",
    }  # fmt: skip
    story = killed(web, tmp_path / "killed", 3, calm.asked, *COMPONENTS)
    assert story.status == 0, story.crawl.complaints
    assert story.harvest.faults() == []
    rejected = story.crawl.ask("status")["rejected"]
    assert isinstance(rejected, dict)
    assert rejected["nine_of_ten"]
    assert differences(story.harvest, calm.harvest) == []
    for harvest in (calm.harvest, story.harvest):
        assert kept(harvest.directory) == Counter(f"{row['url']} {row['outcome']}" for row in harvest.rows)
        html = [row for row in harvest.rows if row["media_type"] == "text/html"]
        assert html
        assert all(row["letters"] and row["lines"] is not None for row in html)


def kept(directory: Path) -> Counter[str]:
    """Return what the archive of the package kept."""
    assert list((directory / "brought").glob("*.open")) == []
    return Counter(line for path in (directory / "brought").iterdir() for line in path.read_text().splitlines())


@pytest.mark.heavy
@pytest.mark.promise(
    "Components and Python", "An archive component that fails ends the crawl in one line and loses nothing."
)
@pytest.mark.parametrize("method", ["add", "cut", "close"])
@pytest.mark.usefixtures("marks")
def test_an_archive_that_fails_ends_the_crawl_in_one_line_and_loses_nothing(
    method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    web = SimwebOptions.plain(hosts=2, pages=20, latency_s=0.0, bytes_median=1_000)
    with SimwebProcess(web, tmp_path / "web") as served:
        monkeypatch.setenv(brought.FAILING, method)
        crawl = crawl_of(served, tmp_path / "crawl", 'components.archives=["archive"]')
        crawl.start()
        assert crawl.wait() == 1
        lines = crawl.complaints.splitlines()
        assert len(lines) == 1, lines
        assert f"components.archives: archive failed in {method}" in lines[0]
        assert "ValueError: on purpose; the state is saved, gossamer resume" in lines[0]
        assert "ValueError: on purpose" in (crawl.directory / "logs/critical.log").read_text()
        if method == "close":  # All was fetched: what the others keep is whole.
            assert Harvest(crawl.directory).faults() == []
            assert (crawl.directory / "index.cdxj").stat().st_size
        monkeypatch.delenv(brought.FAILING)
        resumed(crawl)
    harvest = Harvest(crawl.directory)
    assert harvest.faults() == []
    assert harvest.rows
    assert kept(crawl.directory) == Counter(f"{row['url']} {row['outcome']}" for row in harvest.rows)
    assert len({row["url"] for row in harvest.rows}) == len(harvest.rows)


def resumed(crawl: Crawl) -> None:
    crawl.complaints = ""
    crawl.start()
    assert crawl.wait() == 0, crawl.complaints
