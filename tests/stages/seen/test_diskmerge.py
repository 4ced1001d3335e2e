"""The disk-merge form: bounded memory, few files, and no file that the manifest does not name."""

from __future__ import annotations

from pathlib import Path

import pytest

from gossamer.ports import KNOWN, NEW, SHORTER
from gossamer.stages.seen.diskmerge import FRONT_SPAN_MAX, DiskMergeUrlSeen
from gossamer.stages.seen.offers import FOLDER, GROUPS
from gossamer.stages.seen.options import SeenOptions
from gossamer.state.schema import PARTITIONED
from tests.stages.seen.opened import Opened, numbered

SMALL = SeenOptions(popular_urls_max=50, front_urls_max=1000)


def seen_of(opened: Opened) -> DiskMergeUrlSeen:
    assert isinstance(opened.seen, DiskMergeUrlSeen)
    return opened.seen


def logged(opened: Opened) -> int:
    return sum(1 for _ in opened.store.scan("seen", *PARTITIONED))


def test_memory_is_bounded_while_it_grows(tmp_path: Path) -> None:
    opened = Opened("diskmerge", tmp_path, SMALL)
    seen, epoch = seen_of(opened), 300
    for start in range(0, 30_000, epoch):
        assert opened.offer([numbered(number) for number in range(start, start + epoch)]) == [NEW] * epoch
        opened.offer([numbered(number) for number in range(0, start, 97)])
        opened.commit()
        most = FRONT_SPAN_MAX * SMALL.front_urls_max + epoch
        assert sum(map(len, seen._front)) <= most
        assert sum(map(len, seen._frozen)) <= most
        assert len(seen._popular) <= SMALL.popular_urls_max
    runs = [run for of_group in seen._runs for run in of_group]
    assert len(runs) <= 5 * GROUPS, "a few a group, as the ratio of their sizes promises"
    assert 8 * sum(len(run._firsts) + len(run.words) for run in runs) < 3 * 30_000
    assert set(opened.offer([numbered(number) for number in range(30_000)])) == {KNOWN}
    while seen._working is not None:
        opened.wait()
        opened.commit()
    files = list((tmp_path / FOLDER).iterdir())
    assert len(files) == sum(map(len, seen._runs)), "what was merged is gone"
    assert sum(path.stat().st_size for path in files) < 13 * 30_000 + 4096 * len(files)
    opened.crash()


def test_the_newest_of_several_files_has_the_way(tmp_path: Path) -> None:
    opened = Opened("diskmerge", tmp_path, SMALL)
    urls = [numbered(number) for number in range(12_000)]
    nearer = urls[:1000]
    for offered, depth in ((urls, 9), (nearer, 4)):
        opened.offer(offered, depth)
        opened.commit()
        opened.wait()
        opened.commit()
    assert sum(map(len, seen_of(opened)._runs)) == 2 * GROUPS
    for _ in range(2):
        assert {opened.seen.way(url) for url in nearer} == {(4, 0)}
        assert set(opened.offer(nearer, 6)) == {KNOWN}
        opened.crash()
        opened = Opened("diskmerge", tmp_path, SMALL)
    opened.crash()


def test_what_is_in_runs_leaves_the_log_and_other_files_go(tmp_path: Path) -> None:
    opened = Opened("diskmerge", tmp_path, SMALL)
    for start in range(0, 8000, 2000):
        opened.offer([numbered(number) for number in range(start, start + 2000)])
        opened.commit()
        assert logged(opened) > 0
        opened.wait()
    opened.commit()
    assert logged(opened) == 0
    names = {entry.name for entry in opened.journals.finals(FOLDER)}
    assert {f"{FOLDER}/{path.name}" for path in (tmp_path / FOLDER).iterdir()} == names
    opened.crash()

    (tmp_path / FOLDER / "03-00000077.run").write_bytes(b"of a merge whose epoch never was")
    (tmp_path / FOLDER / "03-00000078.run.new").write_bytes(b"half of one")
    opened = Opened("diskmerge", tmp_path, SMALL)
    assert {f"{FOLDER}/{path.name}" for path in (tmp_path / FOLDER).iterdir()} == names
    assert set(opened.offer([numbered(number) for number in range(8000)])) == {KNOWN}
    opened.crash()


def test_a_shorter_way_wins_over_one_in_files_and_in_the_popular_cache(tmp_path: Path) -> None:
    opened = Opened("diskmerge", tmp_path, SMALL)
    urls = [numbered(number) for number in range(1200)]
    opened.offer(urls, 9, 4)
    opened.commit()
    opened.wait()
    opened.commit()
    assert not any(seen_of(opened)._front)
    for depth, hops, answer in [(9, 4, KNOWN), (8, 7, SHORTER), (8, 4, KNOWN), (9, 3, SHORTER), (8, 3, KNOWN)]:
        assert set(opened.offer(urls, depth, hops)) == {answer}
    opened.commit()
    opened.wait()
    opened.commit()
    opened.crash()
    opened = Opened("diskmerge", tmp_path, SMALL)
    assert {opened.seen.way(url) for url in urls} == {(8, 3)}
    opened.crash()


def test_a_url_that_one_page_names_twice_is_new_once(tmp_path: Path) -> None:
    opened = Opened("diskmerge", tmp_path, SMALL)
    urls = [numbered(number) for number in range(300)]
    nearer = [*urls[:100], *urls[:100]]
    depths = [2] * 100 + [1] * 100

    assert opened.offer([*urls, *urls]) == [NEW] * 300 + [KNOWN] * 300
    assert opened.offer([*nearer, numbered(300), numbered(300)], 0) == [SHORTER] * 100 + [KNOWN] * 100 + [NEW, KNOWN]
    more = [numbered(number) for number in range(400, 500)]
    assert list(seen_of(opened).offer([*more, *more], depths, [0] * 200)) == [NEW] * 100 + [SHORTER] * 100
    opened.crash()


def test_a_merge_that_fails_fails_the_commit(tmp_path: Path) -> None:
    opened = Opened("diskmerge", tmp_path, SMALL)
    (tmp_path / FOLDER).write_text("a file where the folder should be")
    opened.offer([numbered(number) for number in range(1500)])
    opened.commit()
    assert seen_of(opened)._working is not None
    assert seen_of(opened)._working.exception() is not None
    with pytest.raises(OSError, match="seen"):
        opened.commit()
    opened.crash()
    (tmp_path / FOLDER).unlink()
    opened = Opened("diskmerge", tmp_path, SMALL)
    assert set(opened.offer([numbered(number) for number in range(1500)])) == {KNOWN}, "they were committed"
    opened.crash()


def test_a_damaged_file_does_not_open(tmp_path: Path) -> None:
    opened = Opened("diskmerge", tmp_path, SMALL)
    opened.offer([numbered(number) for number in range(1500)])
    opened.commit()
    opened.wait()
    opened.commit()
    opened.crash()
    path = next((tmp_path / FOLDER).iterdir())
    path.write_bytes(path.read_bytes()[:-9])
    opened_again = pytest.raises(OSError, match="damaged")
    with opened_again:
        Opened("diskmerge", tmp_path, SMALL)
