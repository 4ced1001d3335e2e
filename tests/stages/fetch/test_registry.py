from __future__ import annotations

import asyncio

from gossamer.assembly.protocols import Protocols
from gossamer.model.visits import Failure, Reply, Request
from gossamer.ports import ProtocolModule
from gossamer.stages.fetch.bodies import BodyMemory
from gossamer.stages.fetch.options import FetchOptions

BODIES = BodyMemory(FetchOptions())


class Echo:
    """A scheme that always fails in its own way."""

    def __init__(self) -> None:
        self.closed = 0

    async def fetch(self, request: Request) -> Reply | Failure:
        return Failure("timeout", request.url)

    async def close(self) -> None:
        self.closed += 1


def test_each_scheme_has_its_module() -> None:
    async def main() -> None:
        web, gopher = Echo(), Echo()
        protocols: ProtocolModule = Protocols({"http": web, "https": web, "gopher": gopher}, BODIES)
        answer = await protocols.fetch(Request(url="HTTP://a.test/", ip="127.0.0.1", port=80))
        assert answer == Failure("timeout", "HTTP://a.test/")
        for url in ("mailto:a@b.test", "x", ""):
            failure = await protocols.fetch(Request(url=url, ip="127.0.0.1", port=80))
            assert isinstance(failure, Failure)
            assert (failure.outcome, failure.retry, failure.host_level) == ("unsupported", False, False)
        await protocols.close()
        assert (web.closed, gopher.closed) == (1, 1)

    asyncio.run(main())


def test_schemes() -> None:
    assert Protocols({"http": Echo()}, BODIES).schemes == {"http"}
