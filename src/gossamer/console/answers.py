"""Answers: what is said in return, as JSON."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from starlette.responses import Response

STATUSES: Mapping[object, int] = {
    "invalid": 422, "refused": 422, "conflict": 409, "missing": 404, "overdue": 504, "busy": 503, "failed": 500,
}  # fmt: skip
"""Of what has no result, by its kind."""
ERROR_CHARACTERS_MAX = 1_000
"""What somebody sent stands in what is wrong with it; not all of it."""
NEVER_KEPT = {"Cache-Control": "no-store"}


class Problem(msgspec.Struct, frozen=True):
    """Why there is no result, in one line."""

    error: str


def result(value: object, status: int = 200) -> Response:
    """Return an answer that is there."""
    return Response(msgspec.json.encode(value), status, NEVER_KEPT, "application/json")


def error(status: int, says: str, headers: Mapping[str, str] | None = None) -> Response:
    """Return an answer that there is none."""
    body = msgspec.json.encode(Problem(" ".join(says.split())[:ERROR_CHARACTERS_MAX]))
    return Response(body, status, {**NEVER_KEPT, **(headers or {})}, "application/json")


def answer(found: Mapping[str, object], status: int = 200) -> Response:
    """Return what was answered as on the control socket: `ok` with `result`, or `error` with its `kind`."""
    if found.get("ok"):
        return result(found.get("result"), status)
    headers = {"Retry-After": "1"} if found.get("kind") == "busy" else None
    return error(STATUSES.get(found.get("kind"), 422), str(found.get("error", "refused")), headers)
