"""A filter for `components.filters`: it keeps a crawl away from printer-friendly pages and from months of calendars.

gossamer crawl https://docs.example.org/ --contact you@example.org --set 'components.filters=["filter.py:NoCalendars"]'
"""

import re

from gossamer.model.links import Link

MONTH = re.compile(r"/(?:19|20)\d\d/(?:0[1-9]|1[0-2])/|[?&](?:print|month)=")


class NoCalendars:
    """Rejects a link by its address. The name is what `gossamer why` shows."""

    name = "no_calendars"

    def rejects(self, link: Link) -> bool:
        return MONTH.search(link.url.text) is not None
