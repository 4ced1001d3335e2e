"""Operations: what can be asked over HTTP, one value each. Routes and their description (OpenAPI) are made of these."""

import asyncio
import pkgutil
import re
import tomllib
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated, Any, Literal, NamedTuple, Self

import msgspec
from msgspec import Meta
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from gossamer.model import verbs
from gossamer.model.product import __version__


class ConsoleCounts(msgspec.Struct, kw_only=True):
    """The console's own state, since it began."""

    connections: Annotated[int, Meta(description="Connections that are open now.")]
    connections_displaced: Annotated[int, Meta(description="Slow or idle connections closed to make room for others.")]
    connections_refused: Annotated[int, Meta(description="Connections closed because no room could be made.")]
    streams: Annotated[int, Meta(description="Event streams that are open now.")]
    streams_displaced: Annotated[int, Meta(description="Event streams closed to make room for others.")]
    requests_busy: Annotated[int, Meta(description="Requests refused because too many were under way.")]
    searches: Annotated[int, Meta(description="Queries passed to the search process.")]
    search_processes: Annotated[int, Meta(description="Search processes started.")]
    search_failures: Annotated[int, Meta(description="Queries at which the search process died or took too long.")]
    search_last_failure: Annotated[str, Meta(description="How it failed last; empty: it never did.")]

    @classmethod
    def zero(cls) -> Self:
        """Return the counts of a console that begins."""
        *numbers, _ = cls.__struct_fields__
        return cls(search_last_failure="", **dict.fromkeys(numbers, 0))


Fields = dict[str, object]
Method = Literal["GET", "POST"]
Run = Callable[[Mapping[str, str], Any], Awaitable[Mapping[str, object]]]
"""Takes the parameters of the path, and the request; returns an answer as the control socket gives it."""
STATUSES: Mapping[object, int] = {
    "invalid": 422, "refused": 422, "conflict": 409, "missing": 404, "overdue": 504, "busy": 503, "failed": 500,
}  # fmt: skip
"""HTTP statuses of errors, by their kind."""
ERROR_CHARACTERS_MAX = 1_000
"""A message repeats what was sent, cut to this length."""
NEVER_KEPT = {"Cache-Control": "no-store"}
DEADLINE_S = 90.0
"""Time limit of any answer; verbs have shorter ones."""


class Bounds(NamedTuple):
    """Limits of requests."""

    body_bytes_max: int
    request_s_max: float


class Operation(NamedTuple):
    """One thing that can be asked."""

    method: Method
    path: str
    name: str
    """Of the request, for who reads what is wrong with it."""
    takes: type[verbs.VerbRequest]
    gives: type[msgspec.Struct]
    says: str
    run: Run
    status: int = 200
    """When all is well."""
    example: str = ""
    """Fields that an answer about wrong ones shows."""


class _RefusedError(Exception):
    def __init__(self, status: int, says: str) -> None:
        super().__init__(says)
        self.status = status


class UnderWay:
    """Bounds the requests under way: of all operations, and of each one to a quarter of that."""

    def __init__(self, at_once_max: int, figures: ConsoleCounts) -> None:
        self._at_once_max = at_once_max
        self._of_one_max = max(1, at_once_max // 4)
        self._figures = figures
        self._counts: Counter[str] = Counter()

    @contextmanager
    def one(self, name: str) -> Iterator[None]:
        """Count a request of an operation while the context is open. Raises BusyError: there are too many."""
        counts = self._counts
        if counts[name] >= self._of_one_max or counts.total() >= self._at_once_max:
            self._figures.requests_busy += 1
            raise verbs.BusyError(f"{name}: too many requests are under way; try again in a second")
        counts[name] += 1
        try:
            yield
        finally:
            counts[name] -= 1


def result_of(run: Callable[[Mapping[str, str], Any], Awaitable[object]]) -> Run:
    """Return the work of an operation, whose answer is the result of `run`."""

    async def answer(path: Mapping[str, str], asked: verbs.VerbRequest) -> Mapping[str, object]:
        return {"ok": True, "result": await run(path, asked)}

    return answer


def routes(operations: Iterable[Operation], bounds: Bounds, under_way: UnderWay) -> list[Route]:
    """Return the routes of operations, one for each path."""
    of: dict[str, dict[str, Operation]] = {}
    for operation in operations:
        of.setdefault(operation.path, {})[operation.method] = operation
    return [_route(path, by_method, bounds, under_way) for path, by_method in of.items()]


def _route(path: str, by_method: Mapping[str, Operation], bounds: Bounds, under_way: UnderWay) -> Route:
    async def handle(request: Request) -> Response:
        operation = by_method["GET" if request.method == "HEAD" else request.method]
        try:
            asked = await _read(request, operation, bounds)
            with under_way.one(operation.name):
                async with asyncio.timeout(DEADLINE_S):
                    found = await operation.run(request.path_params, asked)
        except _RefusedError as refused:
            # The rest of the body is not waited for.
            return error(refused.status, str(refused), {"Connection": "close"})
        except verbs.RefusedError as refused:
            found = {"ok": False, "error": str(refused), "kind": refused.kind}
        except TimeoutError:
            found = {"ok": False, "error": f"no answer within {DEADLINE_S:.0f} s", "kind": "overdue"}
        return answer(found, operation.status)

    return Route(path, handle, methods=list(by_method))


async def _read(request: Request, operation: Operation, bounds: Bounds) -> verbs.VerbRequest:
    if operation.method == "GET":
        pairs = request.query_params.multi_items()
        fields: Fields = dict(pairs)
        if len(fields) != len(pairs):
            raise verbs.InvalidError(f"{operation.name}: each field may stand there once")
        is_text = True
    else:
        fields = _decode(await _body(request, bounds), operation.name)
        is_text = False
    try:
        return verbs.check_request(operation.name, operation.takes, fields, from_texts=is_text)
    except verbs.InvalidError as error:
        if not operation.example:
            raise
        raise verbs.InvalidError(f"{error}; write {operation.example}") from error


def _decode(body: bytes, name: str) -> Fields:
    if not body:
        return {}
    try:
        found = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError) as mistake:
        raise _RefusedError(400, f"{name}: not JSON: {mistake}") from mistake
    if not isinstance(found, dict):
        raise verbs.InvalidError(f"{name}: the body must be a JSON object")
    return found


async def _body(request: Request, bounds: Bounds) -> bytes:
    body = bytearray()
    try:
        async with asyncio.timeout(bounds.request_s_max):
            if not await read_body(request, bounds.body_bytes_max, body.extend):
                raise _RefusedError(413, f"more than {bounds.body_bytes_max:,} bytes")
    except TimeoutError:
        raise _RefusedError(408, f"the body did not arrive within {bounds.request_s_max:g} s") from None
    except ClientDisconnect:
        raise _RefusedError(400, "gone") from None
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/json" and (body or media_type):
        raise _RefusedError(415, "the body must be JSON, and Content-Type say so: application/json")
    return bytes(body)


async def read_body(request: Request, bytes_max: int, take: Callable[[bytes], object]) -> bool:
    """Pass a request's body to `take`, piece by piece; False if it is larger than `bytes_max`."""
    length = request.headers.get("content-length", "0")
    if not length.isdigit() or int(length[:20]) > bytes_max:
        return False
    taken = 0
    async for piece in request.stream():
        taken += len(piece)
        if taken > bytes_max:
            return False
        take(piece)
    return True


class Problem(msgspec.Struct, frozen=True):
    """Why there is no result, in one line."""

    error: str


def result(value: object, status: int = 200) -> Response:
    """Return an answer with a result."""
    return Response(msgspec.json.encode(value), status, NEVER_KEPT, "application/json")


def error(status: int, says: str, headers: Mapping[str, str] | None = None) -> Response:
    """Return an answer that is an error."""
    body = msgspec.json.encode(Problem(" ".join(says.split())[:ERROR_CHARACTERS_MAX]))
    return Response(body, status, {**NEVER_KEPT, **(headers or {})}, "application/json")


def answer(found: Mapping[str, object], status: int = 200) -> Response:
    """Return what was answered as on the control socket: `ok` with `result`, or `error` with its `kind`."""
    if found.get("ok"):
        return result(found.get("result"), status)
    headers = {"Retry-After": "1"} if found.get("kind") == "busy" else None
    return error(STATUSES.get(found.get("kind"), 422), str(found.get("error", "refused")), headers)


PROBLEMS: dict[str, str] = tomllib.loads((pkgutil.get_data("gossamer.console", "problems.toml") or b"").decode())
SCHEMAS = "#/components/schemas/"


def openapi(operations: Iterable[Operation], *, reads_need_token: bool) -> dict[str, Any]:
    """Return the description of `operations`."""
    known = list(operations)
    types = [Problem, *dict.fromkeys(one for each in known for one in (each.takes, each.gives))]
    schemas, components = msgspec.json.schema_components(types, ref_template=SCHEMAS + "{name}")
    components = {name: _plain_arrays(schema) for name, schema in components.items()}
    of = dict(zip(types, schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for one in known:
        needs_token = one.method == "POST" or reads_need_token
        paths.setdefault(one.path, {})[one.method.lower()] = _describe(one, of, components, needs_token=needs_token)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Gossamer", "version": __version__, "description": "Requests that a crawl answers."},
        "paths": paths,
        "components": {"schemas": components, "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
    }


def _describe(one: Operation, of: dict[Any, Any], components: dict[str, Any], *, needs_token: bool) -> dict[str, Any]:
    named = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in re.findall(r"\{(\w+)\}", one.path)
    ]
    fields = _resolve(of[one.takes], components)
    if one.method == "GET":
        named += [
            {"name": name, "in": "query", "required": name in fields.get("required", []), "schema": schema}
            for name, schema in fields.get("properties", {}).items()
        ]
    problems = {status: _describe_answer(says, of[Problem]) for status, says in PROBLEMS.items()}
    found: dict[str, Any] = {
        "operationId": re.sub(r"\W+", "_", f"{one.method.lower()}{one.path}").rstrip("_"),
        "summary": one.says,
        "parameters": named,
        "responses": {str(one.status): _describe_answer("The answer.", of[one.gives]), **problems},
        "security": [{"token": []}] if needs_token else [],
    }
    if one.method == "POST":
        found["requestBody"] = {
            "required": bool(fields.get("required")),
            "content": {"application/json": {"schema": of[one.takes]}},
        }
    return found


def _plain_arrays(schema: Any) -> Any:
    """Return a schema without `prefixItems`, which common OpenAPI tools misread: items have any of their types."""
    if isinstance(schema, list):
        return [_plain_arrays(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    found = {name: _plain_arrays(one) for name, one in schema.items()}
    if (kinds := found.pop("prefixItems", None)) is not None:
        different = [kind for number, kind in enumerate(kinds) if kind not in kinds[:number]]
        found["items"] = different[0] if len(different) == 1 else {"anyOf": different}
    return found


def _resolve(schema: Mapping[str, Any], components: Mapping[str, Any]) -> Mapping[str, Any]:
    reference = schema.get("$ref")
    return components[reference.removeprefix(SCHEMAS)] if reference is not None else schema


def _describe_answer(says: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"description": says, "content": {"application/json": {"schema": schema}}}
