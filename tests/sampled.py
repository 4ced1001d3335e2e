"""What a run looks at of long tests and of long series: in CI a fifth, each day another; in `make nightly` all."""

from __future__ import annotations

import os
from datetime import UTC, datetime

EVERY = int(os.environ.get("GOSSAMER_EVERY", "5"))
"""One of this number is looked at."""
FIRST = datetime.now(UTC).toordinal() % EVERY
"""Whose numbers leave this remainder. A failure names what failed, which runs by its name on any day."""
