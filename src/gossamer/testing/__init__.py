"""Testing: fakes and contracts for authors of components.

Takes    nothing, or the component under test
Gives    FakeClock, FakeGates, FakeWeb, MemoryArchive, FixedResolver; contracts that say which promise was broken
Keeps    the requests, for tests to inspect
Imports  frontier, model, ports, url, world
Touches  nothing: no clock, no disk, no network
Never    is a mock: a fake keeps the promises of the real part, and passes the same contracts
"""

from gossamer.testing.conformance import (
    check_archive,
    check_bias,
    check_content_seen,
    check_filter,
    check_frontier,
    check_middleware,
    check_prioritizer,
    check_processing_module,
    check_protocol_module,
    check_resolver,
    check_revisit_policy,
    check_url_seen,
)
from gossamer.testing.fakes import FakeClock, FakeGates, FakeWeb, FixedResolver, MemoryArchive, page, reply

__all__ = [
    "FakeClock",
    "FakeGates",
    "FakeWeb",
    "FixedResolver",
    "MemoryArchive",
    "check_archive",
    "check_bias",
    "check_content_seen",
    "check_filter",
    "check_frontier",
    "check_middleware",
    "check_prioritizer",
    "check_processing_module",
    "check_protocol_module",
    "check_resolver",
    "check_revisit_policy",
    "check_url_seen",
    "page",
    "reply",
]
