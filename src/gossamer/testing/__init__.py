"""Testing: fakes and contracts for authors of components.

Takes    nothing, or the component under test
Gives    FakeClock, FakeGates, FakeWeb, MemoryArchive, FixedResolver; contracts that say which promise was broken
Keeps    the requests, for tests to inspect
Imports  frontier, model, ports, url, world
Touches  nothing: no clock, no disk, no network
Never    is a mock: a fake keeps the promises of the real part, and passes the same contracts
"""

from gossamer.testing.conformance import check_archive as check_archive
from gossamer.testing.conformance import check_bias as check_bias
from gossamer.testing.conformance import check_content_seen as check_content_seen
from gossamer.testing.conformance import check_filter as check_filter
from gossamer.testing.conformance import check_frontier as check_frontier
from gossamer.testing.conformance import check_middleware as check_middleware
from gossamer.testing.conformance import check_prioritizer as check_prioritizer
from gossamer.testing.conformance import check_processing_module as check_processing_module
from gossamer.testing.conformance import check_protocol_module as check_protocol_module
from gossamer.testing.conformance import check_resolver as check_resolver
from gossamer.testing.conformance import check_revisit_policy as check_revisit_policy
from gossamer.testing.conformance import check_url_seen as check_url_seen
from gossamer.testing.fakes import FakeClock as FakeClock
from gossamer.testing.fakes import FakeGates as FakeGates
from gossamer.testing.fakes import FakeWeb as FakeWeb
from gossamer.testing.fakes import FixedResolver as FixedResolver
from gossamer.testing.fakes import MemoryArchive as MemoryArchive
from gossamer.testing.fakes import page as page
from gossamer.testing.fakes import reply as reply
