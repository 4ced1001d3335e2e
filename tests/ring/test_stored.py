"""A crawl whose checkpoints are in an object store is read from there by every command that reads crawls."""

from __future__ import annotations

import asyncio
import json
import shutil
import socket
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import obstore
import pytest

from gossamer import Crawler
from gossamer.api import restoring
from gossamer.api.restoring import restore_of
from gossamer.config import configure
from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.process import SimwebProcess
from tests import commands
from tests.ring.crawls import OWN
from tests.stages.archive.bucket import KEYS, NAME, Bucket

WEB = SimwebOptions.plain(seed=4, hosts=4, pages=60, bytes_median=3000)


class Stored(NamedTuple):
    """A crawl here, without its WARC files, and the same in a store."""

    directory: Path
    uri: str
    sets: tuple[str, ...]
    bucket: Bucket


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stored]:
    folder = tmp_path_factory.mktemp("stored")
    with pytest.MonkeyPatch.context() as patch, Bucket() as bucket, SimwebProcess(WEB, folder / "web") as web:
        for name, value in KEYS.items():
            patch.setenv(name, value)
        uri = f"s3://{NAME}/crawls/two"
        places = (f"state.checkpoint_uri='{uri}'", bucket.sets[1], "archive.store_keep_warc=false")
        options = {"allow_private": True, "hosts": str(web.hosts_file), "scope": "any"}
        config = configure(options=options, sets=(*OWN, *places), seeds=web.seeds)
        assert asyncio.run(Crawler(output=folder / "crawl", config=config).run()) == "finished"
        assert list((folder / "crawl/warc").iterdir()) == []
        yield Stored(folder / "crawl", uri, ("--set", bucket.sets[1]), bucket)


def run(stored: Stored, name: str, *arguments: str) -> str:
    """Run a command on the store, and return what it prints."""
    status, out, err = commands.run(name, stored.uri, *arguments, *stored.sets)
    assert status == 0, err
    assert f"gossamer: from {stored.uri}: commit " in err
    return out


def run_here(stored: Stored, name: str, *arguments: str) -> str:
    status, out, err = commands.run(name, str(stored.directory), *arguments)
    assert status == 0, err
    return out


def test_status_why_and_report_say_the_same_of_the_store(stored: Stored) -> None:
    counted = ("state", "pages", "attempts", "discovered", "queued", "outcomes")
    there, here = (json.loads(one(stored, "status", "--json")) for one in (run, run_here))
    assert {key: there[key] for key in counted} == {key: here[key] for key in counted}
    assert there["damage"] == []
    there, here = (json.loads(one(stored, "report", "--json")) for one in (run, run_here))
    assert there["attempts"] == here["attempts"] > 0
    [url] = [row for row in run_here(stored, "changes").split() if row.startswith("http")][:1]
    there, here = (json.loads(one(stored, "why", url, "--json")) for one in (run, run_here))
    assert there["state"] == here["state"] == "fetched"


@pytest.mark.heavy
def test_exports_of_the_store_are_those_of_the_crawl(stored: Stored, tmp_path: Path) -> None:
    """With bodies too, which only the store has: one WARC record is one range."""
    for form, name in (("jsonl", "pages.jsonl"), ("markdown", "pages"), ("pagefiles", "files")):
        run(stored, "export", "--to", form, "-o", str(tmp_path / f"there-{name}"))
        run_here(stored, "export", "--to", form, "-o", str(tmp_path / f"here-{name}"))
        there, here = (contents(tmp_path / f"{place}-{name}") for place in ("there", "here"))
        assert there == here
        assert there
    run(stored, "export", "--to", "wacz", "-o", str(tmp_path / "crawl.wacz"))
    found = json.loads(run(stored, "search", "the", "--json"))
    assert found["total"] >= 0


def test_messages_name_the_store_and_not_where_it_was_copied_to(stored: Stored, tmp_path: Path) -> None:
    assert run(stored, "verify").startswith(f"{stored.uri} is sound")
    status, _, err = commands.run("sample", stored.uri, *stored.sets)
    assert (status, f"gossamer: {stored.uri} did not walk" in err) == (2, True)
    status, _, err = commands.run("changes", stored.uri, *stored.sets)
    assert (status, "gossamer-stored" in err) == (0, False)
    status, _, err = commands.run("rank", stored.uri, *stored.sets)
    assert (status, "name the file to write with -o FILE" in err) == (2, True)
    assert run(stored, "rank", "-o", str(tmp_path / "ranks.bin"))


def test_what_reads_all_records_brings_them(stored: Stored, tmp_path: Path) -> None:
    """Also where a WACZ is one of several formats, and with options that are one word."""
    sets = f"--set={stored.sets[1]}"
    status, _, err = commands.run("export", stored.uri, "--to=csv,wacz", "-o", str(tmp_path / "both"), sets)
    assert status == 0, err
    assert sorted(contents(tmp_path / "both")) == ["crawl.wacz", "pages.csv"]
    host = str(json.loads(run(stored, "changes", "--json").splitlines()[0])["url"]).split("/")[2].partition(":")[0]
    assert "/robots.txt" in run(stored, "robots", host)


@pytest.fixture
def unindexed(stored: Stored) -> Iterator[Stored]:
    """The same without an index in the store: the test's is deleted after it."""
    yield stored
    for name in stored.bucket.objects("crawls/two/search/"):
        stored.bucket.client.delete_object(Bucket=NAME, Key=f"crawls/two/search/{name}")


def test_an_index_beside_the_checkpoints_is_searched_without_the_rest(unindexed: Stored) -> None:
    stored = unindexed
    found = json.loads(run(stored, "search", "the", "--json"))
    for _ in range(2):  # The second replaces what the first has made.
        status, _, err = commands.run("search", stored.uri, "--build", *stored.sets)
        assert (status, f"{stored.uri}/search holds " in err) == (0, True), err
    objects = set(stored.bucket.objects("crawls/two/search/"))
    assert len([name for name in objects if name.endswith("meta.json")]) == 1
    assert not [name for name in objects if "part-" in name]
    status, out, err = commands.run("search", stored.uri, "the", "--json", *stored.sets)
    assert status == 0, err
    assert f"gossamer: from {stored.uri}: index of 20" in err
    indexed = json.loads(out)
    assert (indexed["total"], len(indexed["hits"])) == (found["total"], len(found["hits"]))
    assert {hit["url"] for hit in indexed["hits"]} == {hit["url"] for hit in found["hits"]}
    status, _, err = commands.run("search", stored.uri, "the", "--build", *stored.sets)
    assert (status, "search without --build afterwards" in err) == (2, True)


def contents(path: Path) -> dict[str, bytes]:
    files = [one for one in path.rglob("*") if one.is_file()] if path.is_dir() else [path]
    return {str(one.relative_to(path)): one.read_bytes() for one in files if one.suffix != ".json"}


@pytest.mark.parametrize("kind", ["warc/", "pages/", "state/"])
def test_verify_looks_at_the_objects(stored: Stored, kind: str) -> None:
    """At those that it brings here, too."""
    assert "is sound" in run(stored, "verify", "--deep")
    objects = stored.bucket.objects("crawls/two/")
    listed = json.loads(objects["shard-0/latest.json"])
    name = next(one["key"] for one in listed["parts"] if one["name"].startswith(kind) and one["length"])
    data = objects[name]
    key = f"crawls/two/{name}"
    for body, options in ((data[:-1] + b"x", ("--deep",)), (data[:-1], ()), (None, ())):
        if body is None:
            stored.bucket.client.delete_object(Bucket=NAME, Key=key)
        else:
            stored.bucket.client.put_object(Bucket=NAME, Key=key, Body=body)
        status, _, err = commands.run("verify", stored.uri, *options, *stored.sets)
        stored.bucket.client.put_object(Bucket=NAME, Key=key, Body=data)
        assert status == 1
        assert f"1 object missing, or not what was written: {stored.uri}/{name}" in err


def test_verify_reads_each_object_once(stored: Stored, monkeypatch: pytest.MonkeyPatch) -> None:
    with requests_of(monkeypatch) as seen:
        assert "is sound" in run(stored, "verify", "--deep")
    assert {name: count for name, count in seen.items() if count > 1} == {}
    with requests_of(monkeypatch) as seen:
        assert "is sound" in run(stored, "verify")
    assert {name: count for name, count in seen.items() if count > 1} == {}
    assert not [name for name in seen if name.startswith("head ") and f"get {name[5:]}" in seen]


@contextmanager
def requests_of(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """Count requests to stores while the context lasts: kind and name of the object."""
    seen: Counter[str] = Counter()

    def counting(kind: str, request: Callable[..., Any]) -> Callable[..., Any]:
        def send(store: object, name: str, *rest: object, **options: object) -> Any:
            seen[f"{kind} {name}"] += 1
            return request(store, name, *rest, **options)

        return send

    with monkeypatch.context() as patch:
        for kind in ("get", "head"):
            patch.setattr(obstore, f"{kind}_async", counting(kind, getattr(obstore, f"{kind}_async")))
        yield seen


def test_a_command_reads_no_object_twice(stored: Stored, monkeypatch: pytest.MonkeyPatch) -> None:
    """The list of a large crawl's files is long, and a running crawl may have replaced it by then."""
    with requests_of(monkeypatch) as seen:
        run(stored, "report", "--json")
    assert seen["get shard-0/latest.json"] == 1
    assert set(seen.values()) == {1}


def test_what_is_read_is_not_looked_for_before(stored: Stored, monkeypatch: pytest.MonkeyPatch) -> None:
    with requests_of(monkeypatch) as seen:
        run(stored, "verify", "--deep")
    assert any(one.startswith("get warc/") for one in seen)
    assert not [one for one in seen if one.startswith("head ")]


def test_what_is_restored_without_warc_files_goes_on(stored: Stored, tmp_path: Path) -> None:
    restore_of([stored.uri], tmp_path / "back", [stored.sets[1]])
    shutil.rmtree(tmp_path / "back/warc", ignore_errors=True)
    assert commands.run("verify", str(tmp_path / "back"))[0] == 0
    status, out, _ = commands.run("status", str(tmp_path / "back"), "--json")
    assert (status, json.loads(out)["damage"]) == (0, [])
    assert asyncio.run(Crawler.resume(tmp_path / "back").run()) == "finished"


def test_a_store_without_checkpoints_is_one_line(stored: Stored) -> None:
    status, out, err = commands.run("status", f"s3://{NAME}/nothing", *stored.sets)
    assert (status, out) == (2, "")
    assert f"there is no checkpoint at s3://{NAME}/nothing" in err


@pytest.mark.parametrize(
    ("uri", "line"),
    [
        (
            "s3://wrong/crawls/two",
            "cannot read the checkpoints at s3://wrong/crawls/two: The specified bucket does not",
        ),
        ("s3:/archive/crawls/two", "s3:/archive/crawls/two: a store is named as s3://BUCKET/PREFIX"),
        ("S3://archive/crawls/two", "S3://archive/crawls/two: a store is named as s3://BUCKET/PREFIX"),
    ],
)
def test_mistakes_in_a_uri_are_one_line(stored: Stored, uri: str, line: str) -> None:
    status, out, err = commands.run("status", uri, *stored.sets)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert line in err


def test_a_page_in_place_of_the_store_is_named_with_its_uri(stored: Stored) -> None:
    """As of a network that wants a login."""
    stored.bucket.client.put_object(Bucket=NAME, Key="portal/crawl.toml", Body=b"<html>Sign in</html>")
    status, _, err = commands.run("status", f"s3://{NAME}/portal", *stored.sets)
    assert (status, f"s3://{NAME}/portal/crawl.toml is not TOML" in err) == (2, True), err


@pytest.mark.parametrize(
    ("endpoint", "line"),
    [
        ("127.0.0.1:9", "AWS_ENDPOINT: 127.0.0.1:9 has no scheme; write https://127.0.0.1:9, or http://"),
        ("http://127.0.0.1:9", "AWS_ENDPOINT: http:// needs allow_http"),
    ],
)
def test_an_endpoint_that_cannot_be_used_is_one_line(
    stored: Stored, endpoint: str, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT", endpoint)
    status, _, err = commands.run("status", stored.uri)
    assert (status, err.count("\n"), line in err) == (2, 1, True), err


def test_a_store_that_does_not_answer_is_one_line(stored: Stored, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restoring, "ANSWER_S_MAX", 0.2)
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("AWS_ENDPOINT", f"http://127.0.0.1:{silent.getsockname()[1]}")
        status, _, err = commands.run("status", stored.uri)
    assert (status, f"{stored.uri}: no answer within 0 s; check the endpoint" in err) == (2, True), err


def test_a_folder_of_checkpoints_is_named_as_a_store(tmp_path: Path) -> None:
    (tmp_path / "shard-0").mkdir()
    (tmp_path / "shard-0/latest.json").touch()
    status, _, err = commands.run("status", str(tmp_path))
    assert (status, f"name it as {tmp_path.as_uri()}" in err) == (2, True), err


def test_options_of_the_store_can_come_from_the_environment(stored: Stored, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in stored.bucket.options.items():
        monkeypatch.setenv(f"AWS_{name.upper()}", value)
    status, out, err = commands.run("status", "--json", stored.uri)
    assert status == 0, err
    assert json.loads(out)["pages"] > 0


def test_a_command_that_changes_a_crawl_takes_a_directory(stored: Stored) -> None:
    status, _, err = commands.run("pause", stored.uri)
    assert status == 2
    assert err.count("\n") == 1
