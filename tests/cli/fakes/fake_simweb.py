"""A web of one seed that serves nothing."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self

Preset = Literal["small", "large"]


@dataclass
class SimwebOptions:
    name: str
    changes: dict[str, object]

    @classmethod
    def preset(cls, name: str, **changes: object) -> SimwebOptions:
        return cls(name, changes)


class SimwebProcess:
    def __init__(self, options: SimwebOptions, directory: Path) -> None:
        self.seeds = ["http://127.0.0.1/pages/3"]
        self.hosts_file = directory / "hosts"
        self.options = "{}"

    def __enter__(self) -> Self:
        self.hosts_file.parent.mkdir(parents=True, exist_ok=True)
        self.hosts_file.write_text("127.0.0.1 made.test\n")
        return self

    def __exit__(self, *failure: object) -> None:
        (self.hosts_file.parent / "closed").touch()
