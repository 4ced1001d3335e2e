"""Registry: which module speaks which scheme."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AsyncExitStack

from gossamer.model.visits import Failure, Reply, Request
from gossamer.ports import ProtocolModule


class Protocols:
    """`ports.ProtocolModule` for all schemes at once: hands each request to the module of its scheme."""

    def __init__(self, modules: Mapping[str, ProtocolModule]) -> None:
        """`modules` by scheme, lower case, without colon. One module may stand for several schemes."""
        self._modules = dict(modules)

    @property
    def schemes(self) -> frozenset[str]:
        """Schemes that can be fetched."""
        return frozenset(self._modules)

    async def fetch(self, request: Request) -> Reply | Failure:
        """Fetch with the scheme's module; a scheme without one is `unsupported`."""
        scheme = request.url.partition(":")[0].lower()
        module = self._modules.get(scheme)
        if module is None:
            return Failure("unsupported", f"no protocol module speaks {scheme[:32]!r}", ip=request.ip)
        return await module.fetch(request)

    async def close(self) -> None:
        """Close every module, each once; one that raises keeps none of the others open."""
        async with AsyncExitStack() as stack:
            for module in {id(module): module for module in self._modules.values()}.values():
                stack.push_async_callback(module.close)
