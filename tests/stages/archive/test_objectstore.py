"""Copies in a bucket of a real S3 server: whole, verified, once."""

from __future__ import annotations

import asyncio
import hashlib
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from gossamer.model.errors import ConfigError, StoreError
from gossamer.options import convert
from gossamer.stages.archive.objectstore import Fixity, ObjectStore, fixity_of
from gossamer.stages.archive.options import ArchiveOptions

from .bucket import KEYS, NAME, Bucket

PART = 5_242_880
PREFIX = "crawls/one/"


@pytest.fixture(scope="module")
def bucket() -> Iterator[Bucket]:
    with Bucket() as one:
        yield one


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """One object a test: they share the bucket."""
    return f"warc/{hashlib.sha1(request.node.name.encode()).hexdigest()[:8]}.warc.gz"


def store_of(bucket: Bucket, **changes: object) -> ObjectStore:
    given = {"store": f"s3://{NAME}/crawls/one", "store_options": bucket.options, "store_part_bytes": PART, **changes}
    return ObjectStore(convert(ArchiveOptions, given))


def copied(store: ObjectStore, source: Path | bytes, name: str, *, overwrite: bool = False) -> str:
    return asyncio.run(store.copy(source, name, overwrite=overwrite))


def file_of(directory: Path, size: int, seed: int = 1) -> Path:
    path = directory / f"{size}-{seed}"
    path.write_bytes(random.Random(seed).randbytes(size))
    return path


@pytest.mark.heavy
@pytest.mark.parametrize("size", [0, 1, 70_000, PART, PART + 1, 3 * PART])
def test_what_is_copied_is_there_once_and_its_tag_is_foreseen(
    bucket: Bucket, tmp_path: Path, name: str, size: int
) -> None:
    path, store = file_of(tmp_path, size), store_of(bucket)
    assert copied(store, path, name) == hashlib.sha256(path.read_bytes()).hexdigest()
    assert bucket.objects()[name] == path.read_bytes()
    head = bucket.client.head_object(Bucket=NAME, Key=PREFIX + name)
    assert head["ETag"].strip('"') == fixity_of(path, PART).tag, "verified without reading back"
    copied(store, path, name)
    assert bucket.written()[name] == 1, "what is there already is not sent again"


def test_parts_grow_with_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gossamer.stages.archive.objectstore.PARTS_MAX", 2)
    fixity = fixity_of(file_of(tmp_path, 3000), 1000)
    assert fixity == Fixity(3000, 1500, fixity.sha256, fixity.tag)
    assert fixity.tag.endswith("-2")


def test_another_crawls_object_stays_as_it_is(bucket: Bucket, tmp_path: Path, name: str) -> None:
    store = store_of(bucket)
    copied(store, file_of(tmp_path, 1000, 1), name)
    for other in (file_of(tmp_path, 1000, 2), file_of(tmp_path, 999, 3)):
        with pytest.raises(StoreError, match="another crawl's") as raised:
            copied(store, other, name)
        assert raised.value.of_file
    assert bucket.objects()[name] == file_of(tmp_path, 1000, 1).read_bytes()
    copied(store, b"a view", name, overwrite=True)
    assert bucket.objects()[name] == b"a view"


@pytest.mark.promise(
    "Files and exports", "A file counts as uploaded to an object store only after its content there was verified."
)
@pytest.mark.parametrize("size", [1000, 2 * PART])
def test_what_was_spoiled_on_its_way_is_noticed(bucket: Bucket, tmp_path: Path, name: str, size: int) -> None:
    path = file_of(tmp_path, size)
    path.write_bytes(path.read_bytes()[:-20] + b"THE VERY LAST BYTES!")
    bucket.wire.spoil = (b"THE VERY LAST BYTES!", b"THE VERY LAST BYTES?")
    try:
        with pytest.raises(StoreError, match="is not what was sent"):
            copied(store_of(bucket), path, name)
    finally:
        bucket.wire.spoil = None


def test_a_tag_that_is_no_sum_of_the_content_is_not_believed(tmp_path: Path) -> None:
    """A directory's tags are times: what arrived is read back, and whoever is in the way is found out."""
    store = ObjectStore(ArchiveOptions(store=f"file://{tmp_path}/far/away"))
    path = file_of(tmp_path, 5000)
    assert copied(store, path, "warc/a") == copied(store, path, "warc/a")
    assert (tmp_path / "far/away/warc/a").read_bytes() == path.read_bytes()
    (tmp_path / "far/away/warc/a").write_bytes(bytes(5000))
    with pytest.raises(StoreError, match="another crawl's"):
        copied(store, path, "warc/a")
    trusting = ObjectStore(ArchiveOptions(store=f"file://{tmp_path}/far/away", store_verify="size"))
    assert copied(trusting, path, "warc/a")


def test_reading_back_can_be_asked_for(bucket: Bucket, tmp_path: Path, name: str) -> None:
    path = file_of(tmp_path, 2 * PART)
    assert copied(store_of(bucket, store_verify="read"), path, name) == hashlib.sha256(path.read_bytes()).hexdigest()
    assert bucket.objects()[name] == path.read_bytes()


def test_parts_of_another_size_are_no_other_content(bucket: Bucket, tmp_path: Path, name: str) -> None:
    path = file_of(tmp_path, 3 * PART)
    copied(store_of(bucket), path, name)
    copied(store_of(bucket, store_part_bytes=2 * PART), path, name)
    assert bucket.written()[name] == 1


def test_a_bucket_that_is_not_there_is_the_operators_to_mend(bucket: Bucket, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"^The specified bucket does not exist \(NoSuchBucket\)$") as raised:
        copied(store_of(bucket, store="s3://nobody/p"), file_of(tmp_path, 10), "warc/a")
    assert raised.value.lasting


def test_wrong_credentials_are_one_line(bucket: Bucket, tmp_path: Path, name: str) -> None:
    bucket.refuse_strangers()
    try:
        with pytest.raises(StoreError, match=r"^The AWS Access Key Id .* \(InvalidAccessKeyId\)$") as raised:
            copied(store_of(bucket), file_of(tmp_path, 10), name)
    finally:
        bucket.let_all_in()
    assert raised.value.lasting
    assert "\n" not in str(raised.value)


def test_a_server_that_is_down_is_worth_another_try(bucket: Bucket, tmp_path: Path, name: str) -> None:
    store, path = store_of(bucket), file_of(tmp_path, 10)
    bucket.wire.cut()
    try:
        with pytest.raises(StoreError) as raised:
            copied(store, path, name)
    finally:
        bucket.wire.mend()
    assert not raised.value.lasting
    assert not raised.value.of_file
    copied(store, path, name)
    assert bucket.objects()[name] == path.read_bytes()


def test_a_server_that_does_not_answer_is_not_waited_for(bucket: Bucket, tmp_path: Path, name: str) -> None:
    bucket.wire.bytes_s = 100.0
    try:
        with pytest.raises(StoreError, match=r"no end of|error sending request|timed? ?out"):
            copied(store_of(bucket, store_request_s_max=0.2), file_of(tmp_path, 100_000), name)
    finally:
        bucket.wire.bytes_s = 0.0


def test_a_folder_may_have_any_name(tmp_path: Path) -> None:
    folder = tmp_path / "more than one é"
    store = ObjectStore(convert(ArchiveOptions, {"store": folder.as_uri()}))
    asyncio.run(store.copy(b"content", "name"))
    assert (folder / "name").read_bytes() == b"content"
    assert list(tmp_path.iterdir()) == [folder]


def test_a_file_that_is_gone_is_that_files_fault(bucket: Bucket, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be read: No such file") as raised:
        copied(store_of(bucket), tmp_path / "gone", "warc/gone")
    assert raised.value.of_file


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"store": "s3://key:secret@bucket/p"}, "no credentials in the URL"),
        ({"store": "az://bucket/p?sig=1"}, "no credentials in the URL"),
        ({"store": "bucket"}, "archive.store: bucket has no scheme; write s3://, gs://, az://, or file:///"),
        ({"store": "nobody://bucket"}, "Unable to recognise URL"),
        ({"store": "http://example.org/p"}, "is no object store"),
        ({"store": "memory://"}, "is no object store"),
        ({"store": "s3://b/p", "store_options": {"colour": "blue"}}, "'colour' is not valid"),
        ({"store": "s3://b/p", "store_options": {"secret_access_key": "x"}}, "would be archived"),
        ({"store": "s3://b/p", "store_options": {"aws_session_token": "x"}}, "would be archived"),
        ({"store": "az://b/p", "store_options": {"account_key": "x"}}, "would be archived"),
        ({"store": "s3://b/p", "store_options": {"endpoint": "http://127.0.0.1:9"}}, 'needs allow_http = "true"'),
        ({"store": "file://folder"}, "has no absolute path; write file:///PATH"),
        (
            {"store": "s3://b/p", "store_secrets_file": "/nowhere.toml"},
            "/nowhere.toml cannot be read: No such file or directory; name a file that you can read",
        ),
    ],
)
def test_mistakes_are_one_line(options: dict[str, object], line: str) -> None:
    with pytest.raises(ConfigError) as raised:
        ObjectStore(convert(ArchiveOptions, options))
    assert line in str(raised.value)
    assert str(raised.value).startswith("archive.store")
    assert "\n" not in str(raised.value)


def test_secrets_come_from_a_file_that_is_not_archived(
    bucket: Bucket, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for key in KEYS:
        monkeypatch.delenv(key)
    secrets = tmp_path / "secrets.toml"
    secrets.write_text('access_key_id = "someone"\nsecret_access_key = "something"\n')
    copied(store_of(bucket, store_secrets_file=str(secrets)), file_of(tmp_path, 10), name)
    assert name in bucket.objects()
    secrets.write_text("access_key_id = 7\n")
    with pytest.raises(ConfigError, match="expected lines such as"):
        store_of(bucket, store_secrets_file=str(secrets))
