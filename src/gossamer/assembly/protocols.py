"""Protocols: the module that speaks each scheme, as the configuration names it."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from msgspec.structs import replace

from gossamer.config import Config
from gossamer.config.secret import common_headers, request_rules
from gossamer.engine.watchdogs import fitting_requests
from gossamer.model.extras import require
from gossamer.model.visits import Failure, Reply, Request
from gossamer.plugins import fitting, naming
from gossamer.ports import ProtocolModule
from gossamer.stages.fetch.bodies import BodyMemory
from gossamer.stages.fetch.credentials import proxy_of, reveal
from gossamer.stages.fetch.file import FileModule
from gossamer.stages.fetch.ftp import FtpModule
from gossamer.stages.fetch.gopher import GopherModule
from gossamer.stages.fetch.http import HttpModule, Sign
from gossamer.stages.fetch.options import FetchOptions
from gossamer.world.clock import Clock
from gossamer.world.machine import ThisMachine
from gossamer.world.spill import Spills

if TYPE_CHECKING:
    from gossamer.stages.fetch.rules import RequestRules


def protocol_modules(config: Config, agent: str, clock: Clock, spills: Spills | None = None) -> Protocols:
    """Return the module of each scheme: built-in ones, and those that the configuration names."""
    fetch = _within_files(config.fetch)
    bodies = BodyMemory(fetch, spills)
    http = HttpModule(_with_secrets(config, fetch), agent, clock, bodies, _signer(config, clock), _rules_of(config))
    ftp = FtpModule(fetch, agent, clock, bodies)
    modules: dict[str, ProtocolModule] = {"http": http, "https": http, "ftp": ftp, "ftps": ftp}
    modules["gopher"] = GopherModule(fetch, agent, clock, bodies)
    modules["file"] = FileModule(config.fetch, agent, clock, bodies)
    for scheme, name in config.components.protocols.items():
        key = f"components.protocols.{scheme}"
        made = fitting(name, key, ProtocolModule, options=config.fetch, agent=agent, clock=clock)
        modules[scheme] = cast("ProtocolModule", naming(made, name, key, "fetch", port=ProtocolModule))
    return Protocols(modules, bodies)


def _rules_of(config: Config) -> RequestRules | None:
    """Return the rules for requests; None, without importing them, if there are none."""
    found = request_rules(config)
    if not found:
        return None
    from gossamer.stages.fetch.digest import Digests  # noqa: PLC0415 - as the docstring says
    from gossamer.stages.fetch.rules import RequestRules  # noqa: PLC0415

    digests = Digests() if any(rule.digest is not None for rule in found.values()) else None
    return RequestRules(found, config.robots.product_token, digests)


def _signer(config: Config, clock: Clock) -> Sign | None:
    """Return the signer of requests; None if they are not signed. Raises ConfigError if there is no readable key."""
    options = config.identity
    if not options.key_file:
        return None
    require("cryptography", "identity.key_file")
    from gossamer.features.identity.keys import KeyFile  # noqa: PLC0415 - crawls that do not sign need no cryptography
    from gossamer.features.identity.signing import RequestSigner  # noqa: PLC0415

    keys = KeyFile(Path(options.key_file), clock.now())
    return RequestSigner(keys, options.directory, options.signature_s, clock.now)


def _within_files(options: FetchOptions) -> FetchOptions:
    """Return the options with no more kept connections than the system's limit of open files permits."""
    fitting = fitting_requests(ThisMachine().open_files_max())
    return replace(options, connections_max=max(1, min(options.connections_max, fitting)))


def _with_secrets(config: Config, options: FetchOptions) -> FetchOptions:
    """Return the options of fetching with their secrets filled in. Raises ConfigError if a secret cannot be read."""
    resolves = options.proxy_resolves
    # RFC 9110, section 10.1.2.
    sender = {"From": config.operator.contact.removeprefix("mailto:")} if config.identity.send_from else {}
    return replace(
        options,
        headers={**sender, **common_headers(config)},
        proxy=proxy_of(reveal(options.proxy, "fetch.proxy"), "fetch.proxy"),
        proxy_resolves=config.resolve.allow_private if resolves is None else resolves,
    )


class Protocols:
    """`ports.ProtocolModule` for all schemes at once: hands each request to the module of its scheme."""

    def __init__(self, modules: Mapping[str, ProtocolModule], bodies: BodyMemory) -> None:
        """`modules` by scheme, lower case, without colon. One module may serve several schemes; `bodies` is theirs."""
        self.bodies = bodies
        self._modules = dict(modules)

    @property
    def schemes(self) -> frozenset[str]:
        """Schemes that can be fetched."""
        return frozenset(self._modules)

    def fetch(self, request: Request) -> Coroutine[Any, Any, Reply | Failure]:
        """Fetch with the scheme's module; a scheme without one is `unsupported`."""
        scheme = request.url.partition(":")[0].lower()
        module = self._modules.get(scheme)
        return module.fetch(request) if module is not None else _refuse_scheme(request, scheme)

    async def close(self) -> None:
        """Close every module once, even if another raises."""
        async with AsyncExitStack() as stack:
            for module in {id(module): module for module in self._modules.values()}.values():
                stack.push_async_callback(module.close)


async def _refuse_scheme(request: Request, scheme: str) -> Failure:
    return Failure("unsupported", f"no protocol module speaks {scheme[:32]!r}", ip=request.ip)
