"""Secret: which values of a configuration are credentials, what is shown in their place, and where headers go."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

from gossamer.config.sections import Config, sections
from gossamer.fetch.credentials import REDACTED, is_credential, is_reference, origin_of, redact_user_info, revealed
from gossamer.model.errors import ConfigError
from gossamer.model.live import is_marked

ALL_SECRET = frozenset({"fetch.origin_headers"})
"""Keys whose every value is secret, whatever its name: it is for one origin alone."""


@cache
def secret_keys() -> frozenset[str]:
    """Return the dotted keys that may hold credentials."""
    return frozenset(
        f"{section}.{key}"
        for section, model in sections().items()
        for key, field in model.model_fields.items()
        if is_marked(field, "secret")
    )


def redacted(key: str, value: object) -> object:
    """Return a key's value as people may see it. References to secrets (`env:NAME`) are kept."""
    if key in ALL_SECRET:
        return _mapped(value, lambda _: True)
    return _mapped(value, is_credential if key in secret_keys() else lambda _: False)


def holds_secrets(config: Config) -> bool:
    """Say whether the configuration as text would show a secret to its reader."""
    return any(redacted(key, config.value(key)) != config.value(key) for key in secret_keys())


def origin_headers(config: Config) -> dict[str, dict[str, str]]:
    """Return the headers that single origins receive, their values read from where they are.

    Credentials in `fetch.headers` are for the origin of the seeds, if they have one origin only: the URLs that were
    given as arguments or in `seeds.urls`. A seed of http may be redirected to https on the same host: that is the same
    owner on a safer way, so both origins receive them.

    Raises:
        ConfigError: a secret cannot be read, or no single origin is known for a credential.
    """
    bound = {
        origin: revealed(headers, f"fetch.origin_headers: {origin}")
        for origin, headers in config.fetch.origin_headers.items()
    }
    loose = {name: value for name, value in config.fetch.headers.items() if is_credential(name)}
    if loose:
        revealed_headers = revealed(loose, "fetch.headers")
        for origin in _origins_of_seeds(config, next(iter(loose))):
            bound[origin] = {**revealed_headers, **bound.get(origin, {})}
    return bound


def common_headers(config: Config) -> dict[str, str]:
    """Return the headers of every request: those of `fetch.headers` that carry no credentials."""
    return {name: value for name, value in config.fetch.headers.items() if not is_credential(name)}


def _origins_of_seeds(config: Config, name: str) -> list[str]:
    seeds = config.seeds
    origins = list(dict.fromkeys(map(origin_of, seeds.urls)))
    if len(origins) != 1 or seeds.file or seeds.domains_file or seeds.segments or seeds.watch_directory:
        example = origins[0] if origins else "https://example.org"
        raise ConfigError(
            f"fetch.headers: {name} is a credential, and the seeds are not all of one origin; "
            f'name its origin: fetch.origin_headers = {{"{example}" = {{{name} = "env:NAME"}}}}'
        )
    [origin] = origins
    is_plain = origin.startswith("http://") and ":" not in origin.removeprefix("http://")
    return [origin, origin.replace("http://", "https://", 1)] if is_plain else [origin]


def _mapped(value: object, is_secret: Callable[[str], bool], name: str = "") -> object:
    match value:
        case str():
            return REDACTED if is_secret(name) and value and not is_reference(value) else redact_user_info(value)
        case list() | tuple():
            return type(value)(_mapped(one, is_secret, name) for one in value)
        case Mapping():
            return {key: _mapped(one, is_secret, str(key)) for key, one in value.items()}
    return value
