"""Which operations of a long series a run looks at: in CI each fifth, others every day; `make nightly` all."""

from __future__ import annotations

import os
from datetime import UTC, datetime

EVERY = int(os.environ.get("GOSSAMER_EVERY", "5"))
"""One operation of this number is looked at."""
FIRST = datetime.now(UTC).toordinal() % EVERY
"""Whose numbers leave this remainder; a failure names its number, and `GOSSAMER_EVERY=1` repeats it on any day."""
