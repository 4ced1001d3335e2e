"""The progress of archives, as commits store it."""

from __future__ import annotations

from gossamer.results.imports.progress import Progresses

ARCHIVES = 50


class CountingEpochs:
    """Epochs that count what is put into them."""

    def __init__(self) -> None:
        self.kept: dict[bytes, bytes] = {}
        self.puts = 0

    def put(self, _family: str, key: bytes, value: bytes) -> None:
        self.kept[key] = value
        self.puts += 1

    def scan(self, _family: str, *_: object) -> list[tuple[bytes, bytes]]:
        return list(self.kept.items())


def test_a_commit_stores_what_has_changed() -> None:
    """One commit of an import of a million archives does not write a million of keys."""
    epochs = CountingEpochs()
    progresses = Progresses(epochs)  # type: ignore[arg-type]
    for number in range(ARCHIVES):
        progresses.changed.add(progresses.of(str(number), f"{number}.warc.gz").number)
    progresses.cut(0.0)
    assert epochs.puts == ARCHIVES
    progresses.of("3", "3.warc.gz").done = 7
    progresses.changed.add(3)
    progresses.cut(0.0)
    progresses.cut(0.0)
    assert epochs.puts == ARCHIVES + 1
    again = Progresses(epochs)  # type: ignore[arg-type]
    assert again.of("3", "").done == 7
    assert len(again.known) == ARCHIVES
