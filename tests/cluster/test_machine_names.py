"""The name of a machine's directory: the same as long as the disk is, however often Ray starts there."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gossamer.cluster.job import address_in, name_machine


@pytest.mark.parametrize("address", ["10.0.0.2", "fd00::2"])
def test_a_machine_that_joins_again_has_its_directory_and_another_disk_has_not(address: str, tmp_path: Path) -> None:
    name = name_machine(str(tmp_path / "disk"), address)
    assert name_machine(str(tmp_path / "disk"), address) == name
    assert name_machine(str(tmp_path / "disk"), "10.0.0.3") != name
    assert name_machine(str(tmp_path / "new disk"), address) != name
    assert address_in(name) == address


def test_shards_that_begin_at_once_have_the_same_directory(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as threads:
        names = list(threads.map(lambda _: name_machine(str(tmp_path / "disk"), "10.0.0.2"), range(32)))
    assert len(set(names)) == 1


def test_a_disk_that_cannot_be_written_leaves_the_error_to_the_shard(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert name_machine(str(tmp_path / "file/below"), "10.0.0.2") == "10.0.0.2"


def test_names_of_other_kinds_have_no_address() -> None:
    assert address_in("here") == ""
    assert address_in("7ba2afb56fe891c7aedfec1786d32bd1c43fa679") == ""
