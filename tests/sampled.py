"""What a run looks at: in CI a seventh of the long tests, so that each comes once a week, and of a long series one of
28, each day others; in `make nightly` all.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime

EVERY = int(os.environ.get("GOSSAMER_EVERY", "7"))
"""One of this number of long tests is looked at."""
STEP = 4 * EVERY if EVERY > 1 else 1
"""One of this number of a series is looked at."""
# Named in the environment, so that all workers of a run have the same, at midnight too.
_DAY = int(os.environ.setdefault("GOSSAMER_DAY", str(datetime.now(UTC).toordinal())))
FIRST = _DAY % EVERY
FIRST_STEP = (_DAY // EVERY + 4 * FIRST) % STEP
"""Whose numbers leave this remainder. A failure names what failed, which runs by its name on any day.

Of a series in a long test each week has another part: by the day alone it would be one of four, for ever.
"""
