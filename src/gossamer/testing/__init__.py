"""Testing: what do people who write their own components test them with?

Takes    nothing, or the component under test
Gives    FakeClock, FakeWeb, MemoryArchive, FixedResolver; contracts that say which promise was broken
Keeps    what it was asked, for a test to look at
Imports  model, ports, url, world
Touches  nothing: no clock, no disk, no network
Never    is a mock: a fake keeps the promises of what it stands for, and passes the same contracts
"""

from gossamer.testing.conformance import (
    check_archive,
    check_content_seen,
    check_filter,
    check_prioritizer,
    check_processing_module,
    check_protocol_module,
    check_revisit_policy,
    check_url_seen,
)
from gossamer.testing.fakes import FakeClock, FakeWeb, FixedResolver, MemoryArchive, page, reply

__all__ = [
    "FakeClock",
    "FakeWeb",
    "FixedResolver",
    "MemoryArchive",
    "check_archive",
    "check_content_seen",
    "check_filter",
    "check_prioritizer",
    "check_processing_module",
    "check_protocol_module",
    "check_revisit_policy",
    "check_url_seen",
    "page",
    "reply",
]
