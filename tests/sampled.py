"""What a run looks at: in CI a fifth of the long tests and a tenth of a long series, each day others; in `make nightly`
all.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime

EVERY = int(os.environ.get("GOSSAMER_EVERY", "5"))
"""One of this number of long tests is looked at."""
STEP = 2 * EVERY if EVERY > 1 else 1
"""One of this number of a series is looked at."""
_DAY = datetime.now(UTC).toordinal()
FIRST, FIRST_STEP = _DAY % EVERY, _DAY % STEP
"""Whose numbers leave this remainder. A failure names what failed, which runs by its name on any day."""
