"""Live: the mark of a key that may change while the crawl runs. It stands in the configuration's schema."""

from __future__ import annotations

from pydantic.config import JsonDict

LIVE: JsonDict = {"live": True}
"""As `json_schema_extra` of a field: `gossamer set` takes its key, and a value holds from the next commit on."""
