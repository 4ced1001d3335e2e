"""Changes for the next release: `python -m tests.changes` moves the files of `changes/` into the changelog."""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
AREAS = [
    "Crawling",
    "Politeness",
    "Fetching",
    "Pages and text",
    "Output",
    "Replay and export",
    "Search",
    "Configuration",
    "Cluster",
    "Dashboard and API",
    "Command line",
    "Security",
]
"""Headings of the changelog, in its order."""
SLUGS = {area.lower().replace(" ", "-"): area for area in AREAS}
CHARACTERS_MAX = 500


def list_fragments(folder: Path) -> list[Path]:
    """Return the files of a folder that hold a change each."""
    return sorted(path for path in folder.iterdir() if path.name != "README.md")


def find_fault(path: Path) -> str | None:
    """Say what is wrong with the name or the text of a fragment; None if nothing is."""
    named = re.fullmatch(r"[a-z0-9-]+\.([a-z-]+)\.md", path.name)
    if named is None:
        return f"{path.name}: the name is NAME.AREA.md"
    if named[1] not in SLUGS:
        return f"{path.name}: no area {named[1]}, but {', '.join(SLUGS)}"
    text = path.read_text(encoding="utf-8").strip()
    if not text or len(text) > CHARACTERS_MAX or "\n\n" in text:
        return f"{path.name}: one paragraph of at most {CHARACTERS_MAX} characters"
    if text.startswith(("-", "#", "*")) or not text.endswith((".", ")")):
        return f"{path.name}: sentences without a bullet or heading"
    return None


def insert_changes(changelog: str, fragments: list[tuple[str, str]]) -> str:
    """Return a changelog with changes, each an area and a text, at the end of their area below the first heading."""
    before, heading, rest = changelog.partition("\n## [")
    first, following, later = rest.partition("\n## [")
    title, *parts = re.split(r"^### (.+)\n", first, flags=re.MULTILINE)
    entries = dict(zip(parts[::2], (part.strip() for part in parts[1::2]), strict=True))
    for area, text in fragments:
        entries[area] = f"{entries.get(area, '')}\n- {text}".strip()
    sections = [f"### {area}\n\n{entries[area]}\n" for area in AREAS if area in entries]
    return "\n".join([before + heading + title.rstrip() + "\n", *sections]) + following + later


def main() -> None:
    """Move all fragments into the changelog."""
    if sys.argv[1:]:
        raise SystemExit(f"{sys.argv[1]}: no arguments; it moves all files of changes/ into CHANGELOG.md")
    paths = list_fragments(ROOT / "changes")
    faults = [fault for path in paths if (fault := find_fault(path))]
    if faults:
        raise SystemExit("\n".join(faults))
    changes = [(SLUGS[path.name.split(".")[1]], path.read_text(encoding="utf-8").strip()) for path in paths]
    changelog = ROOT / "CHANGELOG.md"
    changelog.write_text(insert_changes(changelog.read_text(encoding="utf-8"), changes), encoding="utf-8")
    for path in paths:
        path.unlink()


if __name__ == "__main__":
    main()
