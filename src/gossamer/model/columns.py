"""Columns: what processing modules may add to the tables, by name and kind."""

from __future__ import annotations

import re

KINDS = ("text", "int", "float", "bool", "time", "texts", "json")
"""Kinds of value: `time` is wall time in seconds or a datetime, `texts` a list of texts, `json` what JSON can say."""
NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")
"""What a column or a table may be called."""
TABLES_TAKEN = frozenset(("pages", "links", "epochs", "warc", "state", "logs", "search", "checkpoints", "index"))
"""Names that stand for something else in a crawl's directory."""
