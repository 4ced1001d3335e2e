"""The checksums of finished files: each file once, and none is waited for that is not here."""

from pathlib import Path

from gossamer.stages.archive.follower import Sealer
from gossamer.state.sums import sums_of
from tests.stages.archive.web import Shard


def test_a_file_that_is_elsewhere_is_passed_over(tmp_path: Path) -> None:
    shard = Shard(tmp_path)
    for name in ("warc/1", "warc/2"):
        journal = shard.journals.create(name)
        journal.append(name.encode())
        shard.journals.close(journal)
    shard.commit()
    (tmp_path / "warc/1").rename(tmp_path / "moved")  # As those of a shard that moved to another machine.
    sealer = Sealer(shard.journals)
    sealed = []
    while (task := sealer.next()) is not None:
        digest = task.make()
        task.settle(digest)
        sealed.append(digest)
        assert len(sealed) <= 2, "a file was given twice"
    assert sealed == ["", sums_of(tmp_path / "warc/2").sha256]
