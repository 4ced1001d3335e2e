"""Options of link notices: the section `webmention` of the configuration."""

from typing import Annotated

from gossamer.options import Key, Section


class WebmentionOptions(Section, frozen=True):
    """Notices that a page links to a page of the crawl (Webmention)."""

    enabled: Annotated[
        bool, Key("Accept notices at /webmention of the console, and verify them: one request each.")
    ] = False
    notices_max: Annotated[int, Key("Notices that are kept; further ones are refused (503).", ge=1)] = 10_000
    host_waiting_max: Annotated[
        int, Key("Notices with sources of one host that wait for verification; further ones are refused (429).", ge=1)
    ] = 20
    source_s_min: Annotated[
        float, Key("A source is fetched again for the same target after this time, at the earliest.", gt=0)
    ] = 3_600.0
    source_bytes_max: Annotated[
        int, Key("Bytes of a source that are read; a link after them is not found.", ge=1_024)
    ] = 1 << 20
