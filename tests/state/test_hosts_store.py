"""The hosts store: what was written is there for the next crawl, and what was not yet is seen by this one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gossamer.state.store import HOSTS_SLICE_BYTES_MAX, HostsStore

KEY, OTHER = b"\x01\x02hexample.org\0", b"\x01\x02hexample.net\0"


def test_a_value_is_seen_from_when_it_is_put_and_kept_from_when_it_is_written(tmp_path: Path) -> None:
    store = HostsStore(tmp_path)
    assert store.is_new
    assert store.get(KEY) is None
    store.put(KEY, b"1")
    store.cut()
    store.put(KEY, b"2")
    store.put(OTHER, b"3")
    assert store.get(KEY) == b"2"
    store.write()
    store.settle()
    assert (store.get(KEY), store.get(OTHER)) == (b"2", b"3")
    store.close()
    again = HostsStore(tmp_path)
    assert not again.is_new
    assert (again.get(KEY), again.get(OTHER)) == (b"2", b"3")
    again.close()


def test_much_is_written_in_slices_and_all_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A slice has a bound of bytes, too: 4 MB of 2,000 values are 7 slices at least, and would be 4 by their number."""
    slices: list[int] = []
    monkeypatch.setattr("gossamer.state.store.give_way", lambda: slices.append(1))
    store = HostsStore(tmp_path)
    values = {b"\0\0h%d\0" % number: bytes((number % 251 + 1,)) * (2 * number + 1) for number in range(2_000)}
    for key, value in values.items():
        store.put(key, value)
    store.cut()
    store.write()
    store.settle()
    assert len(slices) >= sum(map(len, values.values())) // (HOSTS_SLICE_BYTES_MAX + 4_000)
    assert all(store.get(key) == value for key, value in values.items())
    store.close()


def test_nobody_cuts_before_what_was_cut_is_settled(tmp_path: Path) -> None:
    store = HostsStore(tmp_path)
    store.put(KEY, b"1")
    store.cut()
    with pytest.raises(AssertionError, match="not settled"):
        store.cut()
    store.close()
    again = HostsStore(tmp_path)
    assert again.get(KEY) == b"1", "closing writes what is left"
    again.close()


def test_what_was_written_survives_a_killed_process(tmp_path: Path) -> None:
    script = f"""
import os, signal, sys
from pathlib import Path
from gossamer.state.store import HOSTS_SLICE_BYTES_MAX, HostsStore
store = HostsStore(Path(sys.argv[1]))
store.put({KEY!r}, b"1")
store.cut()
store.write()
os.kill(os.getpid(), signal.SIGKILL)
"""
    source = Path(__file__).parents[2] / "src"
    died = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], env={**os.environ, "PYTHONPATH": str(source)}, check=False
    )
    assert died.returncode == -signal.SIGKILL
    store = HostsStore(tmp_path)
    assert store.get(KEY) == b"1"
    store.close()
