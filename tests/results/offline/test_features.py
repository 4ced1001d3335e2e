"""What a build can be asked for: caps, parts, retries, ranks, indexes, seeds; and whose files it reads."""

from __future__ import annotations

import json
import random
from contextlib import closing
from pathlib import Path

import pytest

from gossamer.model.errors import ConfigError
from gossamer.results.offline import steps
from gossamer.results.offline.build import SegmentOrder, build
from gossamer.results.offline.segment import Segment
from gossamer.results.offline.steps import BuildRequest
from gossamer.url.url import Url
from tests.results.offline.made import link, page, web, write
from tests.results.offline.test_build import built, rows_of

ANY = ("scope.scope=any",)


def urls_in(path: Path) -> list[Url]:
    with closing(Segment(path)) as segment:
        return [one.url for part in segment.links() for one in part.links]


def test_rows_of_a_site_stand_together_the_most_urgent_first(tmp_path: Path) -> None:
    pages, links = web(random.Random(1), 300, 100)
    write(tmp_path, pages, links)
    built(tmp_path)
    with closing(Segment(tmp_path / "next.parquet")) as segment:
        rows = [
            (one.url.partition, one.url.site, level)
            for part in segment.links()
            for one, level in zip(part.links, part.levels, strict=True)
        ]
    assert rows == sorted(rows)
    assert len({site for _, site, _ in rows}) == 5


@pytest.mark.promise("Offline crawls", "A build lists no URL twice by one index, and loses none.")
def test_what_a_cap_keeps_back_is_listed_later_and_not_lost(tmp_path: Path) -> None:
    """Also by builds that are not given the tables again in which the links stand."""
    links = [link("http://a.example/", f"http://a.example/{n}") for n in range(25)]
    links += [link("http://a.example/", f"http://b.example/{n}") for n in range(3)]
    folder = write(tmp_path / "crawl", [page("http://a.example/", 1)], links)
    empty = write(tmp_path / "other", [page("http://c.example/", 1)], [])
    found: list[str] = []
    for number, places in enumerate([(folder,), (empty,), (empty,), (empty,)]):
        order = SegmentOrder(
            places, tmp_path / f"{number}.parquet", tmp_path / "known", sets=ANY, wish=BuildRequest(per_host=10)
        )
        urls = [url.text for url in urls_in(order.target)] if build(order).urls else []
        assert sum(url.startswith("http://a.example/") for url in urls) <= 10
        found += urls
    assert sorted(found) == sorted(row["to_url"] for row in links)


def test_without_an_index_a_cap_leaves_what_the_tables_still_have(tmp_path: Path) -> None:
    links = [link("http://a.example/", f"http://a.example/{n}") for n in range(25)]
    folder = write(tmp_path / "crawl", [page("http://a.example/", 1)], links)
    first = build(SegmentOrder((folder,), tmp_path / "1.parquet", sets=ANY, wish=BuildRequest(per_host=10)))
    assert (first.urls, first.figures["left"]) == (10, 15)


def test_parts_are_disjoint_by_site_and_hold_all(tmp_path: Path) -> None:
    links = [link("http://a.example/", f"http://site{n % 40}.example/{n}") for n in range(400)]
    folder = write(tmp_path, [page("http://a.example/", 1)], links)
    made = built(folder, wish=BuildRequest(parts=4))
    assert [path.name for path in made.paths] == [f"next-{n}-of-4.parquet" for n in range(1, 5)]
    sites = [{url.site for url in urls_in(path)} for path in made.paths]
    assert sum(map(len, sites)) == len(set.union(*sites)) == 40
    assert made.urls == 400
    with closing(Segment(made.paths[2])) as segment:
        assert (segment.about.part, segment.about.parts) == (3, 4)


def test_what_failed_for_the_moment_is_listed_again_so_often_and_no_oftener(tmp_path: Path) -> None:
    address = "http://a.example/slow"
    for number, outcome in enumerate(["timeout", "http_error", "dns_error"]):
        row = page(
            address,
            number,
            outcome=outcome,
            status=503 if outcome == "http_error" else None,
            depth=2,
            referrer="http://a.example/",
        )
        folder = write(
            tmp_path / str(number), [row, page("http://a.example/gone", number, outcome="http_error", status=404)], []
        )
        target = tmp_path / f"{number}.parquet"
        made = build(SegmentOrder((folder,), target, tmp_path / "known", sets=ANY, wish=BuildRequest(retries=2)))
        if number < 2:
            assert rows_of(target) == {address: (address, 2, 2, 0, "anchor", "http://a.example/", number + 2)}
        else:
            assert made.urls == 0
    assert build(SegmentOrder((tmp_path / "2",), tmp_path / "no.parquet", sets=ANY)).urls == 0, "nor without --retry"


def test_rank_by_in_links_counts_other_sites_once_each(tmp_path: Path) -> None:
    links = [link(f"http://site{n}.example/", "http://t.example/popular") for n in range(7)]
    links += [link(f"http://www.site0.example/{n}", "http://t.example/by-one-site") for n in range(9)]
    links += [link(f"http://t.example/{n}", "http://t.example/by-itself") for n in range(9)]
    pages = [page(row["from_url"], n) for n, row in enumerate(links)]
    write(tmp_path, pages, links)
    built(tmp_path, wish=BuildRequest(in_links=True))
    found = rows_of(tmp_path / "next.parquet")
    assert {url.rpartition("/")[2]: row[1] for url, row in found.items()} == {
        "popular": 4,
        "by-one-site": 6,
        "by-itself": 7,
    }
    assert next(iter(found)).endswith("popular")


def test_scores_of_patterns_rank_as_in_a_crawl(tmp_path: Path) -> None:
    write(
        tmp_path,
        [page("http://a.example/", 1)],
        [link("http://a.example/", f"http://a.example/{n}") for n in ("x", "good", "bad")],
    )
    built(tmp_path, sets=(*ANY, "frontier.priority=best_first", 'frontier.scores={"good" = 2, "bad" = -2}'))
    assert [row[:2] for row in rows_of(tmp_path / "next.parquet").values()] == [
        ("http://a.example/good", 2), ("http://a.example/x", 4), ("http://a.example/bad", 6),
    ]  # fmt: skip


@pytest.mark.promise("Offline crawls", "A build lists no URL twice by one index, and loses none.")
@pytest.mark.heavy
def test_a_bloom_index_lists_nothing_twice_and_loses_no_more_than_its_rate(tmp_path: Path) -> None:
    rate, listed = 0.01, 0
    seen: set[str] = set()
    for number in range(4):
        links = [link("http://a.example/", f"http://s{n % 50}.example/{number}/{n}") for n in range(4_000)]
        links += [link("http://a.example/", f"http://s{n % 50}.example/{max(0, number - 1)}/{n}") for n in range(4_000)]
        folder = write(tmp_path / str(number), [page("http://a.example/", 1)], links, 10_000)
        target = tmp_path / f"{number}.parquet"
        listed += build(SegmentOrder((folder,), target, tmp_path / "known", rate, sets=ANY)).urls
        texts = {url.text for url in urls_in(target)}
        assert not texts & seen, "nothing is listed twice"
        seen |= texts
    assert 16_000 * (1 - rate) <= listed <= 16_000
    with pytest.raises(ConfigError, match=r"begun as a Bloom filter of rate 0\.01"):
        build(SegmentOrder((folder,), tmp_path / "x.parquet", tmp_path / "known", 0.0, sets=ANY))


@pytest.mark.heavy
@pytest.mark.long
def test_one_site_larger_than_memory_is_sorted_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "BASE_BYTES", 1 << 40)
    monkeypatch.setattr(steps, "BUFFER_BYTES_MIN", 8_000_000)
    dice = random.Random(1)
    targets = [f"http://{'www.' if n % 2 else ''}a.example/{'%7E' if n % 3 else '~'}{n // 2}" for n in range(3_000)]
    dice.shuffle(targets)
    write(tmp_path, [page("http://a.example/", 1)], [link("http://a.example/", text) for text in targets], 500)
    wish = BuildRequest(per_host=600)
    whole = built(tmp_path, "memory.parquet", wish=wish)
    monkeypatch.setattr(steps, "BUFFER_BYTES_MIN", 40_000)
    assert built(tmp_path, "disk.parquet", wish=wish).urls == whole.urls == 1_200
    assert list(rows_of(tmp_path / "disk.parquet").items()) == list(rows_of(tmp_path / "memory.parquet").items())


def test_seeds_make_a_first_segment_and_its_redirects_widen_the_scope(tmp_path: Path) -> None:
    """By way of the index: the second build is given no seeds."""
    seeds = tmp_path / "seeds.txt"
    seeds.write_text("http://a.example/\nhttp://old.b.example/\n")
    known = tmp_path / "known"
    first = SegmentOrder((), tmp_path / "0.parquet", known, options={"seeds": str(seeds)})
    assert build(first).urls == 2
    assert {row[4] for row in rows_of(first.target).values()} == {"seed"}
    moved = page(
        "http://old.b.example/", 1, outcome="redirected", status=301, redirect_to="http://b.example/", link_type="seed"
    )
    pages = [page("http://a.example/", 0, link_type="seed"), moved]
    links = [link("http://old.b.example/", "http://b.example/", link_type="redirect")]
    links += [
        link("http://a.example/", text)
        for text in ("http://a.example/x", "http://other.example/", "http://b.example/y")
    ]
    write(tmp_path / "0", pages, links)
    build(SegmentOrder((tmp_path / "0",), tmp_path / "1.parquet", known))
    found = rows_of(tmp_path / "1.parquet")
    assert found.keys() == {"http://b.example/", "http://a.example/x", "http://b.example/y"}
    assert found["http://b.example/"][2:5] == (0, 1, "redirect")


def test_links_within_a_pages_own_site_only(tmp_path: Path) -> None:
    links = [link("http://b.example/", "http://a.example/x"), link("http://www.a.example/", "http://a.example/y")]
    links += [link("http://b.example/", "http://a.example/y")]
    write(tmp_path, [page("http://b.example/", 1), page("http://www.a.example/", 2)], links)
    built(tmp_path, sets=(*ANY, "scope.own_site=true"))
    assert rows_of(tmp_path / "next.parquet").keys() == {"http://a.example/y"}


def test_an_index_of_other_rules_is_refused_and_tables_of_other_rules_are_named_anew(tmp_path: Path) -> None:
    links = [
        link("http://a.example/", text) for text in ("http://a.example/x/", "http://a.example/x", "http://A.example/y")
    ]
    folder = write(tmp_path / "crawl", [page("http://a.example/", 1)], links)
    sets = (*ANY, 'url.rules=["drop_trailing_slash"]')
    build(SegmentOrder((folder,), tmp_path / "1.parquet", tmp_path / "known", sets=sets))
    assert len(rows_of(tmp_path / "1.parquet")) == 2, "with that rule the first two are one"
    with pytest.raises(ConfigError, match=r"other rules of the section \[url\]"):
        build(SegmentOrder((folder,), tmp_path / "2.parquet", tmp_path / "known", sets=ANY))


@pytest.mark.parametrize(
    "field",
    [
        {"runs": ["../outside"]}, {"left": "/etc/hostname"}, {"scope": ".."},
        {"publishing": [["PLACE/out", "PLACE/over"]]}, {"publishing": [["PLACE/known/next.part/out", "PLACE/over"]]},
    ],
    ids=str,
)  # fmt: skip
def test_an_index_that_names_files_of_others_is_refused(tmp_path: Path, field: dict[str, object]) -> None:
    write(tmp_path, *web(random.Random(3), 9, 3))
    built(tmp_path, known=tmp_path / "known")
    manifest = tmp_path / "known/manifest.json"
    told = json.dumps(json.loads(manifest.read_text()) | field).replace("PLACE", str(tmp_path))
    manifest.write_text(told)
    for name in ("out", "over"):
        (tmp_path / name).write_text(name)
    with pytest.raises(ConfigError, match="names files of others; no build wrote this"):
        built(tmp_path, "more.parquet", known=tmp_path / "known")
    assert [(tmp_path / name).read_text() for name in ("out", "over")] == ["out", "over"]


def test_repeating_a_build_does_nothing_and_another_order_is_refused(tmp_path: Path) -> None:
    write(tmp_path, *web(random.Random(3), 60, 20))
    first = built(tmp_path, known=tmp_path / "known")
    stamp = (tmp_path / "next.parquet").stat().st_mtime_ns
    again = built(tmp_path, known=tmp_path / "known")
    assert (again.complete, again.urls) == (True, first.urls)
    assert (tmp_path / "next.parquet").stat().st_mtime_ns == stamp
    with pytest.raises(ConfigError, match="built by another order"):
        built(tmp_path, known=tmp_path / "known", wish=BuildRequest(per_host=1))
    assert built(tmp_path, "more.parquet", known=tmp_path / "known").urls == 0
    assert not list(tmp_path.glob("*.part"))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"places": ("nowhere",)}, "there is no nowhere"),
        ({"places": ("empty",)}, "holds no crawl"),
        ({"places": ("text.txt",)}, "neither a crawl's directory nor a WARC file"),
        ({"places": ("bad.warc.gz",)}, "no WARC file"),
        ({"target": "none/x.parquet"}, "there is no directory"),
        ({"target": "text.txt"}, "exists and is no segment"),
        ({"known": "tables"}, "there are files in it, and no index"),
        ({"sets": ("scope.scope=all",)}, "scope.scope"),
        ({"wish": BuildRequest(parts=0)}, "0 parts"),
        ({"options": {"seeds": "none.txt"}}, "cannot read seeds"),
    ],
)
def test_mistakes_are_one_line_and_leave_nothing(
    tmp_path: Path, change: dict[str, object], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(Path("tables"), [page("http://a.example/", 1)], [])
    Path("empty").mkdir()
    Path("text.txt").write_text("hello")
    Path("bad.warc.gz").write_bytes(b"this is no archive" * 100)
    values = {"places": ("tables",), "target": "next.parquet", "sets": ANY, **change}
    values["places"] = tuple(map(Path, values["places"]))  # type: ignore[arg-type]
    for name in ("target", "known"):
        if name in values:
            values[name] = Path(str(values[name]))
    with pytest.raises(ConfigError, match=said) as raised:
        build(SegmentOrder(**values))  # type: ignore[arg-type]
    assert "\n" not in str(raised.value)
    assert not list(Path().glob("*.part"))
