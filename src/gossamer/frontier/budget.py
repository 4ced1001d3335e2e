"""Budget: what a host or a site may take of a round, and how reputation makes it grow. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from gossamer.frontier.options import BudgetOptions


@dataclass(frozen=True, slots=True)
class Budget:
    """What may be spent in a round; None: as much as there is."""

    pages: float | None = None
    """Requests for URLs, whatever came of them."""
    wire_bytes: float | None = None
    time_s: float | None = None
    """Seconds that requests took."""

    @property
    def is_set(self) -> bool:
        """There is a limit."""
        return not (self.pages is None and self.wire_bytes is None and self.time_s is None)

    def grown(self, factor: float) -> Budget:
        """Return so many times as much."""
        if factor == 1.0:
            return self
        return Budget(_times(self.pages, factor), _times(self.wire_bytes, factor), _times(self.time_s, factor))

    def used_up(self, pages: int, wire_bytes: int, time_s: float) -> str:
        """Return what is used up, for people; empty while there is something left of everything."""
        if self.pages is not None and pages >= int(self.pages):
            return f"{int(self.pages)} page{'s' * (int(self.pages) != 1)}"
        if self.wire_bytes is not None and wire_bytes >= self.wire_bytes:
            return f"{int(self.wire_bytes)} bytes"
        if self.time_s is not None and time_s >= self.time_s:
            return f"{self.time_s:g} s"
        return ""


def growth(linking: float, linking_max: float, growth_max: float) -> float:
    """Return how many times its budget a site gets: from 1 for one that nobody links to, up to `growth_max` for the one
    that most others link to, in proportion (STAR: B_min + (B_max - B_min) · d / d_max).
    """
    if linking_max <= 0.0:
        return 1.0
    return 1.0 + (growth_max - 1.0) * min(linking / linking_max, 1.0)


def host_budget(options: BudgetOptions, host: str) -> Budget:
    """Return a host's budget before growth: its own keys before those of all hosts."""
    own = options.overrides.get(host)
    return Budget(
        options.host_pages if own is None or own.pages is None else own.pages,
        options.host_bytes if own is None or own.bytes is None else own.bytes,
        options.host_time_s if own is None or own.time_s is None else own.time_s,
    )


def site_budget(options: BudgetOptions, site: str) -> Budget:
    """Return a site's budget before growth; its own keys stand under its name with a dot before it."""
    own = options.overrides.get("." + site)
    return Budget(
        options.site_pages if own is None or own.pages is None else own.pages,
        options.site_bytes if own is None or own.bytes is None else own.bytes,
        options.site_time_s if own is None or own.time_s is None else own.time_s,
    )


def _times(limit: float | None, factor: float) -> float | None:
    return None if limit is None else limit * factor
