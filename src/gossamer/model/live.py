"""Live: the marks of configuration keys. They are part of the configuration's schema."""

from __future__ import annotations

from pydantic.config import JsonDict

LIVE: JsonDict = {"live": True}
"""As `json_schema_extra` of a field: `gossamer set` takes its key, and a value holds from the next commit on."""
SECRET: JsonDict = {"secret": True}
"""As `json_schema_extra` of a field: its value may hold credentials. No output shows them."""
BASIC: JsonDict = {"basic": True}
"""As `json_schema_extra` of a field: an operator sets its key. `gossamer init` writes these alone; other keys are for
experts.
"""
BASIC_LIVE: JsonDict = {**BASIC, **LIVE}
BASIC_SECRET: JsonDict = {**BASIC, **SECRET}
