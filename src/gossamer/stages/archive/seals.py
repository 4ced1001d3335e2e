"""Seals: the recorded checksums of a crawl's index, by which its damage is found without Arrow."""

from contextlib import suppress
from pathlib import Path

import msgspec

from gossamer.model.decodable import decodable
from gossamer.model.errors import DamagedError
from gossamer.model.words import shell_word
from gossamer.state.sums import Sums, sums_of
from gossamer.world.files import write_whole

INDEX = "index.cdxj"
SEAL = "state/index.json"
"""File with the checksums of `index.cdxj`, in the crawl's directory."""


@decodable
class Seal(msgspec.Struct, frozen=True):
    """Recorded checksums of an index and of its previous version."""

    now: Sums
    before: Sums | None = None


def seal_of(index: Path) -> Seal | None:
    """Return the recorded checksums of an index, None before the first. Raises DamagedError: they are unreadable."""
    path = index.parent / SEAL
    try:
        return msgspec.json.decode(path.read_bytes(), type=Seal)
    except FileNotFoundError:
        return None
    except msgspec.MsgspecError as error:
        raise DamagedError(
            f"{path} was damaged ({error}): it holds the checksums of {index}; "
            f"`gossamer resume {shell_word(index.parent)}` "
            "rebuilds both"
        ) from error


def faults_of_index(index: Path) -> list[str]:
    """Return the fault in the presence or size of a crawl's index, as a list of at most one text."""
    try:
        seal = seal_of(index)
    except DamagedError:
        return ["has no readable checksums: state/index.json was damaged"]
    if seal is None:
        return []
    if not index.exists():
        return ["is missing"]
    sizes = {sums.length for sums in (seal.now, seal.before) if sums is not None}
    size = index.stat().st_size
    return [] if size in sizes else [f"has {size:,} bytes, {seal.now.length:,} were written"]


def record_seal(temporary: Path, target: Path) -> None:
    """Record the checksums of the next index first, so that after a crash the file matches one of two."""
    before: Seal | None = None
    with suppress(DamagedError):
        before = seal_of(target)
    (target.parent / SEAL).parent.mkdir(exist_ok=True)
    seal = Seal(sums_of(temporary), before.now if before is not None else None)
    write_whole(target.parent / SEAL, msgspec.json.encode(seal))
