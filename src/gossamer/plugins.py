"""Plugins: components that other packages bring, found by the name that the configuration gives."""

import importlib
import importlib.util
import inspect
import sys
from asyncio import CancelledError
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from functools import lru_cache, partial, wraps
from numbers import Real
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

from gossamer.model.errors import ComponentError, ConfigError, is_fatal, is_mistake
from gossamer.options import nearest

GROUP = "gossamer.components"
NAMED = "names_its_component"
"""Mark of methods whose errors name the component."""
WHERE = "docs/how-to/components.md says what it must have"
ResultCheck = Callable[[object, tuple[object, ...]], None]
"""Raises TypeError or ValueError for a result that a method must not return, by its arguments."""
ALIKE: Mapping[type, type] = {float: Real, Sequence: Iterable, tuple: Iterable}
"""By type of a result: a wider one that does as well."""
FILES_MAX = 64
"""Files of components whose modules are remembered."""

loading: ContextVar[Callable[[str], object]] = ContextVar("loading", default=len)
"""Called with the key and the name of a component before its code runs for the first time, and with an empty text after
it: a supervisor names what ended the process.
"""


def component(name: str, key: str, ours: Collection[str] = (), what: str = "component") -> object:
    """Return the component `name`: `module:Name`, `file.py:Name`, or an entry point of the group `gossamer.components`.

    The module is imported now; only `assembly` calls this, for names of the configuration. `ours` are the built-in
    names of the key, and `what` is the kind of thing that it names, for the message. Raises ConfigError: there is no
    such module or name; the line begins with `key`, the configuration key that asks.
    """
    module_name, colon, attribute = name.partition(":")
    if colon:
        return _import(name, module_name, attribute, key)
    from importlib.metadata import entry_points  # noqa: PLC0415 - with what it imports, 3 % of a start

    offered = {point.name: point for point in entry_points(group=GROUP)}
    if name in offered:
        return _import(name, offered[name].module, offered[name].attr, key)
    known = ", ".join([*ours, "module:Name"])
    hint = nearest(name, [*ours, *offered], f"write {known}, or install the package that brings {name}")
    raise ConfigError(f"{key}: no {what} {name!r}{hint}")


def build(name: str, key: str, **given: object) -> object:
    """Build the component `name` with keyword arguments; docs/how-to/components.md lists them. Raises ConfigError:
    there is no such component, or it does not take what it is given.
    """
    maker = component(name, key)
    if not callable(maker):
        raise ConfigError(f"{key}: {name} is no class or function; name one that takes {_list_arguments(given)}")
    try:
        inspect.signature(maker).bind(**given)
    except TypeError as error:
        raise ConfigError(f"{key}: {name} must take {_list_arguments(given)} by keyword: {error}") from None
    except ValueError:
        pass  # Some native classes have no signature.
    try:
        made: object = maker(**given)
    except (ConfigError, OSError):
        raise
    except BaseException as error:
        if not is_mistake(error):
            raise
        raise ConfigError(f"{key}: {name} failed when it was built: {_in_words(error)}") from error
    return made


def fitting(name: str, key: str, port: type, **given: object) -> object:
    """Return what `build` does, once it has all that its port names: what is missing would be missed in mid-crawl. Of a
    member with a default in the port, the component may have none. Raises ConfigError: as `build`, or it does not fit.
    """
    made = build(name, key, **given)
    named = {member for one in port.__mro__ if getattr(one, "_is_protocol", False) for member in _members(one)}
    methods = sorted(member for member in named if callable(getattr(port, member, None)))
    needed = sorted({*methods, *(member for member in named if not hasattr(port, member))})
    if missing := [member for member in needed if not hasattr(made, member)]:
        shapes = ", ".join(_shape(port, member) for member in missing if member in methods)
        raise ConfigError(f"{key}: {name} has no {', '.join(missing)}; {WHERE}{shapes and f': {shapes}'}")
    require_shapes(made, name, key, port, methods)
    return made


def require_shapes(made: object, name: str, key: str, port: type, methods: Iterable[str]) -> None:
    """Require that `methods` of a component can be called as those of its port. Raises ConfigError: one takes other
    arguments, or is asynchronous where the port does not wait.
    """
    for method in methods:
        given = getattr(made, method)
        waits = inspect.iscoroutinefunction(given) and not inspect.iscoroutinefunction(getattr(port, method))
        if waits or not _takes(given, list(inspect.signature(getattr(port, method)).parameters)[1:]):
            raise ConfigError(f"{key}: {method} of {name} must be written as {_shape(port, method)}; {WHERE}")


def _takes(method: object, parameters: Sequence[str]) -> bool:
    """Return whether a method takes these arguments by place. A native method may have no signature."""
    if not callable(method):
        return False
    try:
        inspect.signature(method).bind(*parameters)
    except TypeError:
        return False
    except ValueError:
        pass
    return True


def _shape(port: type, method: str) -> str:
    """Return how a method of a port is written: `async resolve(host)`."""
    parameters = list(inspect.signature(getattr(port, method)).parameters)[1:]
    wait = "async " if inspect.iscoroutinefunction(getattr(port, method)) else ""
    return f"{wait}{method}({', '.join(parameters)})"


def naming(made: object, name: str, key: str, *methods: str, port: type = object, **checks: ResultCheck) -> object:
    """Return a component of the operator, whose `methods`, where it has them, raise ComponentErrors that name it as the
    configuration does, also if they return another type than in `port`, or one of `checks`, by the method's name,
    refuses the result. Errors that end the crawl (a full disk) stay what they are. About 0.4 µs a call.
    """
    named: dict[str, Any] = {}
    for method in methods:
        inner = getattr(made, method, None)
        if callable(inner) and not hasattr(inner, NAMED):
            of_port = getattr(port, method, None)
            refuse = checks.get(method) or _check_of(of_port)
            waits = inspect.iscoroutinefunction(inner) or inspect.iscoroutinefunction(of_port)
            named[method] = _name_errors(inner, f"{key}: {name} failed in {method}", refuse, waits=waits)
    own = getattr(made, "__dict__", None)
    if isinstance(own, dict):
        own.update(named)
    elif named:  # Of a class with slots: its methods are those of a class of its own.
        kind: Any = type(made)
        inside = {method: staticmethod(one) for method, one in named.items()}
        with suppress(TypeError):  # Of a native class: it stays as it is.
            object.__setattr__(made, "__class__", type(kind)(kind.__name__, (kind,), {"__slots__": (), **inside}))
    return made


def _check_of(method: object) -> ResultCheck:
    """Return the check of what a port's method returns: none where any value will do, or its truth counts."""
    with suppress(NameError, TypeError):  # There is no such method, or a type that the port does not import.
        hint = get_type_hints(method).get("return")
        types = [get_origin(one) or one for one in (get_args(hint) if isinstance(hint, UnionType) else (hint,))]
        if bool not in types and hint is not NoneType and all(isinstance(one, type) for one in types):
            wanted = " or ".join("None" if one is NoneType else one.__name__ for one in types)
            return partial(_require_type, tuple(ALIKE.get(one, one) for one in types), wanted)
    return lambda *_: None


def _require_type(types: tuple[type, ...], wanted: str, result: object, _: tuple[object, ...]) -> None:
    if not isinstance(result, types):
        raise TypeError(f"it returned a {type(result).__name__}, not {wanted}")


def _name_errors(inner: Callable[..., Any], says: str, refuse: ResultCheck, *, waits: bool) -> Callable[..., Any]:
    def blame(error: BaseException, given: tuple[object, ...]) -> Exception:
        first = given[0] if given else ""
        if isinstance(first, list) and first:
            first = first[0]
        about = getattr(first, "url", "") or getattr(first, "text", first)
        where = f" ({about})" if isinstance(about, str) and about else ""
        return ComponentError(f"{says}{where}: {type(error).__name__}: {error}")

    @wraps(inner)
    def call(*given: object, **named: object) -> object:
        try:
            result: object = inner(*given, **named)
            refuse(result, given)
            return result
        except BaseException as error:
            if is_fatal(error) or not is_mistake(error):
                raise
            raise blame(error, given) from error

    @wraps(inner)
    async def wait(*given: object, **named: object) -> object:
        try:
            result: object = await inner(*given, **named)
            refuse(result, given)
            return result
        except BaseException as error:
            if isinstance(error, CancelledError) or is_fatal(error) or not is_mistake(error):
                raise
            raise blame(error, given) from error

    made = wait if waits else call
    setattr(made, NAMED, True)
    return made


def _members(port: type) -> list[str]:
    return [name for name in (*vars(port), *vars(port).get("__annotations__", ())) if not name.startswith("_")]


def _list_arguments(given: Mapping[str, object]) -> str:
    return ", ".join(given) if given else "no arguments"


def _import(name: str, module_name: str, attribute: str, key: str) -> object:
    note = loading.get()
    note(f"{key}: {name!r}")
    try:
        path = Path(module_name)
        found: object = (
            _load_file(path.absolute(), path.stat().st_mtime_ns)
            if module_name.endswith(".py")
            else importlib.import_module(module_name)
        )
    except BaseException as error:  # Any error in its first lines.
        if not is_mistake(error):
            raise
        raise ConfigError(f"{key}: cannot import {name!r}: {_in_words(error)}") from error
    finally:
        note("")
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise ConfigError(f"{key}: {module_name} has no {attribute!r}{nearest(part, dir(found))}")
        found = getattr(found, part)
    return found


def _in_words(error: BaseException) -> str:
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {error.strerror}"
    text = " ".join(str(error).split())
    return text if isinstance(error, ImportError | OSError | SyntaxError) else f"{type(error).__name__}: {text}"


@lru_cache(maxsize=FILES_MAX)
def _load_file(path: Path, _changed_at: int) -> object:
    """Return the module that a file holds: one for all names in it, until the file changes."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    # Entered before it runs, as an import would: its own classes may be looked up by their module's name.
    sys.modules.setdefault(path.stem, module)
    spec.loader.exec_module(module)
    return module
