"""A prioritizer for `components.prioritizer`: pages and hosts that failed before come later.

gossamer crawl https://docs.example.org/ --contact you@example.org \
    --set components.prioritizer=prioritizer.py:ByPast
"""

from gossamer.model.links import Link
from gossamer.model.standing import DownloadHistory, Standing


class ByPast:
    """Orders URLs by clicks, and later where the download history of page or host is bad."""

    needs = ("linking_sites",)

    def level(self, link: Link) -> int:
        """Return the level where there is no history: in a segment for an offline crawl."""
        return 0 if link.link_type == "seed" else min(1 + link.depth, 7)

    def level_by_history(self, link: Link, history: DownloadHistory) -> int:
        level = self.level(link)
        if history.page is not None and history.page.status == 503:
            level += 2  # It was visited before, and was too busy.
        if history.host.failures:
            level += 1
        return min(level, 7)

    def host_level(self, standing: Standing) -> int:
        """Return the level of a host among those that wait for a place in memory."""
        if standing.failures:
            return 7
        return 2 if standing.linking_sites >= 10 else 4
