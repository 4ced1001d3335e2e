"""Openapi: the description of what can be asked (OpenAPI 3.1), made of the operations themselves."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from gossamer.console.operations import Operation, Problem
from gossamer.model.product import __version__

PROBLEMS = {
    "400": "The body is not JSON, or broke off.",
    "401": "The token is missing or wrong.",
    "403": "Another site asks.",
    "404": "There is no such crawl.",
    "405": "There is no such method.",
    "408": "The body came too slowly.",
    "409": "Not in the crawl's present state: it does not run, or is ending.",
    "413": "The body is too long.",
    "415": "The body is not said to be JSON.",
    "421": "This name is not served here.",
    "422": "A field is missing, unknown or wrong, or the crawl refuses.",
    "504": "No answer in time.",
}
SCHEMAS = "#/components/schemas/"


def description(operations: Iterable[Operation], *, reads_need_token: bool) -> dict[str, Any]:
    """Return the description of `operations`."""
    known = list(operations)
    types = [Problem, *dict.fromkeys(one for each in known for one in (each.takes, each.gives))]
    schemas, components = msgspec.json.schema_components(types, ref_template=SCHEMAS + "{name}")
    components = {name: _plain_arrays(schema) for name, schema in components.items()}
    of = dict(zip(types, schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for one in known:
        needs_token = one.method == "POST" or reads_need_token
        paths.setdefault(one.path, {})[one.method.lower()] = _operation(one, of, components, needs_token=needs_token)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Gossamer", "version": __version__, "description": "Requests that a crawl answers."},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(
    one: Operation, of: Mapping[Any, Any], components: Mapping[str, Any], *, needs_token: bool
) -> dict[str, Any]:
    named = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in re.findall(r"\{(\w+)\}", one.path)
    ]
    fields = _resolved(of[one.takes], components)
    if one.method == "GET":
        required = fields.get("required", [])
        named += [
            {"name": name, "in": "query", "required": name in required, "schema": schema}
            for name, schema in fields.get("properties", {}).items()
        ]
    problems = {status: _answer(says, of[Problem]) for status, says in PROBLEMS.items()}
    found: dict[str, Any] = {
        "operationId": re.sub(r"\W+", "_", f"{one.method.lower()}{one.path}").rstrip("_"),
        "summary": one.says,
        "parameters": named,
        "responses": {str(one.status): _answer("The answer.", of[one.gives]), **problems},
        "security": [{"token": []}] if needs_token else [],
    }
    if one.method == "POST":
        found["requestBody"] = {
            "required": bool(fields.get("required")),
            "content": {"application/json": {"schema": of[one.takes]}},
        }
    return found


def _plain_arrays(schema: Any) -> Any:
    """Return a schema without `prefixItems`, which common OpenAPI tools misread: an array of fixed length whose items
    each have one of the types.
    """
    if isinstance(schema, list):
        return [_plain_arrays(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    found = {name: _plain_arrays(one) for name, one in schema.items()}
    if (kinds := found.pop("prefixItems", None)) is not None:
        different = [kind for number, kind in enumerate(kinds) if kind not in kinds[:number]]
        found["items"] = different[0] if len(different) == 1 else {"anyOf": different}
    return found


def _resolved(schema: Mapping[str, Any], components: Mapping[str, Any]) -> Mapping[str, Any]:
    reference = schema.get("$ref")
    return components[reference.removeprefix(SCHEMAS)] if reference is not None else schema


def _answer(says: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"description": says, "content": {"application/json": {"schema": schema}}}
