"""Mirrors: parts of a host that repeat its others under a directory of another name.

Documentation has its languages (`/de/install.html`, `/fr/install.html`) and versions (`/12/install.html`), whether
translated and rewritten or not. Such a part has as many pages as the others and ends with them, while it looks like a
trap as long as it is fetched: nothing new, and always new addresses. A trap makes new names at each page, so its names
have few pages each, or are too many.
"""

from collections.abc import Callable

from gossamer.url.url import Url, fingerprint

DIRECTORIES_MAX = 4
"""The first directories of a path, whose names are compared."""
MIRRORED_MAX = 2
"""Directories of a host whose names may stand for each other, such as language and version. A catalogue usually has
three filters or more."""
NAMES_MAX = 64
"""Names that are compared of one directory. In an endless series of copies the others are evidence."""
PAGES_MIN = 8
"""Pages under a name before it counts as a part of the host: sessions have fewer."""
FRESH_MIN = 64
"""Pages with something new that a host is given credit for: its first ones are not examined."""

Fetched = Callable[[int, int], bool]
"""Says whether an address was fetched, by partition and fingerprint."""


class Mirrors:
    """State of one host: names in the places of its first directories, with their pages."""

    __slots__ = ("_excused", "_mirrored", "_names", "fresh")

    def __init__(self) -> None:
        self.fresh = 0
        """Pages that said something new, as far as they were examined, each for those that it stands for."""
        self._excused = 0
        self._names: list[dict[str, int]] = [{} for _ in range(DIRECTORIES_MAX)]
        self._mirrored: set[int] = set()

    def has_twin(self, url: Url, is_fetched: Fetched) -> bool:
        """Count a page; return whether it was fetched in another part. Up to `NAMES_MAX` reads a place of a directory.

        Of each page with something new every part has one copy, but the views of an endless calendar have many more.
        """
        path_at = url.key.find("/", url.key.find("://") + 3)
        directories = url.key[path_at:].partition("?")[0].split("/")[1:-1]
        found = False
        for place, (name, names) in enumerate(zip(directories, self._names, strict=False)):
            if name not in names and len(names) >= NAMES_MAX:
                continue
            names[name] = names.get(name, 0) + 1
            may_be = place in self._mirrored or len(self._mirrored) < MIRRORED_MAX
            if found or not may_be or names[name] <= PAGES_MIN:
                continue
            begin = path_at + sum(len(one) + 1 for one in directories[:place]) + 1
            before = url.key[:begin]
            after = url.key[begin + len(name) :]
            parts = [part for part, pages in names.items() if pages > PAGES_MIN]
            elsewhere = {one for other in self._names if other is not names for one in other}
            if 2 * len(elsewhere.intersection(parts)) > len(parts):
                continue  # Tags, which combine in any order, and not languages beside versions.
            others = (fingerprint(before + other + after) for other in parts if other != name)
            may_have = self._excused < len(parts) * (FRESH_MIN + self.fresh)
            found = may_have and any(is_fetched(url.partition, one) for one in others)
            if found:
                self._mirrored.add(place)
                self._excused += 1
        return found
