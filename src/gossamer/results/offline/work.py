"""Work: a build under way, in a folder beside its target, so that it can be killed at any moment and goes on.

`TARGET.part/` holds sorted runs of records and rows, and `state.json`, which says which of them count and how far the
current step is. Files that the state names were synced before; others are removed and made again.
"""

import shutil
from pathlib import Path
from types import TracebackType

import msgspec

from gossamer.model.decodable import decodable
from gossamer.model.errors import ConfigError
from gossamer.results.export.work import ExportPiece, WorkFolder
from gossamer.world.files import sync_directory, write_whole


class BuildPiece(ExportPiece, frozen=True):
    """A finished file that is read."""

    foreign: bool = False
    """Keys in it were made by other rules: they are made again."""
    links_only: bool = False
    """Of a WARC file: a table has its pages."""


@decodable
class BuildInputs(msgspec.Struct):
    """Inputs of a build, as of its start."""

    pages: list[BuildPiece] = []
    links: list[BuildPiece] = []
    warcs: list[BuildPiece] = []
    running: list[str] = []
    """Crawls that went on meanwhile: their finished files count."""
    damaged: list[str] = []
    """Lines about WARC files with damaged records."""


@decodable
class BuildState(msgspec.Struct):
    """How far a build is."""

    order: str
    """The request, in words, as JSON."""
    inputs: BuildInputs | None = None
    step: str = ""
    position: int = 0
    runs: dict[str, list[str]] = {}
    """Names of the files that count, by kind."""
    figures: dict[str, int] = {}
    """Counts so far."""
    serial: int = 0
    publishing: list[tuple[str, str]] = []
    """Everything is made: these files get these names."""


class BuildFolder(WorkFolder):
    """The folder of a build."""

    def __init__(self, target: Path, order: str) -> None:
        """Begin or continue a build. Raises ConfigError: it was begun with another order, or another process has it."""
        super().__init__(target)
        try:
            self.folder.mkdir(exist_ok=True)
        except OSError as error:
            raise ConfigError(f"cannot make {self.folder}: {error.strerror}; name another target with -o") from error
        self._take_lock()
        try:
            stored = self._read_state(BuildState)
            if stored is not None and stored.order != order:
                begun = msgspec.json.decode(stored.order)
                said = ", ".join(f"{name} {value}" for name, value in begun.items() if value)[:300]
                raise ConfigError(
                    f"{self.folder} holds an unfinished build with other options ({said}); "
                    "give the same options to finish it, or delete that folder to start again"
                )
        except ConfigError:
            self._release()
            raise
        self.resumed = stored is not None
        self.state = stored or BuildState(order)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if isinstance(error, ConfigError) and not self.state.runs and not self.state.position:
            shutil.rmtree(self.folder, ignore_errors=True)  # Asked for wrongly: there is nothing to go on with.
        super().__exit__(kind, error, tb)

    def new_name(self, kind: str) -> str:
        """Return the name for another file of a kind; it counts when it is put into `state.runs` and saved."""
        self.state.serial += 1
        return f"{kind}-{self.state.serial:06d}"

    def paths(self, kind: str) -> list[Path]:
        """Return the files of a kind that count."""
        return [self.folder / name for name in self.state.runs.get(kind, [])]

    def save(self) -> None:
        """Save the progress. Everything that it names must be on disk before."""
        write_whole(self._state_file, msgspec.json.encode(self.state))

    def begin(self, step: str, *obsolete: str) -> None:
        """Note that a step begins, and drop the files of kinds that are no longer needed."""
        self.state.step = step
        self.state.position = 0
        for kind in obsolete:
            self.state.runs.pop(kind, None)
        self.save()
        self.sweep()

    def sweep(self) -> None:
        """Remove files that the state does not name: what a kill left half-made, and what has served."""
        names = (name for names in self.state.runs.values() for name in names)
        self._remove_all_but({"lock", "state.json", "logs", "tables", *names})

    def close(self) -> None:
        """Remove the folder: the build is finished. The state goes last."""
        self.state.runs = {}
        self._remove_all_but({"lock", "state.json"})
        self._state_file.unlink(missing_ok=True)
        (self.folder / "lock").unlink(missing_ok=True)
        self.folder.rmdir()
        sync_directory(self.folder.parent)
