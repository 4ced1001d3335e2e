"""Secret: which values of a configuration are credentials, what is shown in their place, and where headers go."""

from collections.abc import Callable, Mapping

from msgspec.structs import replace

from gossamer.config.sections import Config, key_of, keys
from gossamer.features.logins.options import LoginRule
from gossamer.model.errors import ConfigError
from gossamer.options import Section, convert, keys_of, to_table
from gossamer.stages.fetch.credentials import (
    OPEN_HEADERS,
    REDACTED,
    is_credential,
    is_reference,
    origin_of,
    redact_user_info,
    reveal,
)
from gossamer.stages.fetch.options import RequestRule

OPEN = OPEN_HEADERS | {"user"}
"""Names in the value of a rule that are not secret."""
SECRET_VALUES = frozenset(
    name for rule in (RequestRule, LoginRule) for name, one in keys_of(rule).items() if one.key.secret
) - {"proxy"}
"""Keys of rules that no output shows; of a proxy it leaves out the user."""


def redact(key: str, value: object) -> object:
    """Return a key's value as people may see it. References to secrets (`env:NAME`) are kept."""
    if not key_of(key).secret:
        return _redact_within(value, lambda _: False)
    return _redact_within(value, is_credential) if key in keys() else _redact_rule(value)


def holds_secrets(config: Config) -> bool:
    """Return whether the configuration as text would show a secret to its reader."""
    return any(shows_secret(key, config.value(key)) for key in config.all_keys() if key_of(key).secret)


def shows_secret(key: str, value: object) -> bool:
    """Return whether a key's value as text would show a secret to its reader."""
    return redact(key, value) != _plain(value)


def request_rules(config: Config) -> dict[str, RequestRule]:
    """Return the rules of requests by place, their secrets read from where they are.

    Credentials in `fetch.headers` are for the origin of the seeds, if they have one origin only: the URLs that were
    given as arguments or in `seeds.urls`. A seed of http may be redirected to https on the same host: that is the same
    owner by a safer scheme, so both origins receive them. Raises ConfigError: a secret cannot be read, or no single
    origin is known for a credential.
    """
    rules = {where: _reveal_rule(rule, f'request."{where}"') for where, rule in config.request.rules.items()}
    loose = {name: value for name, value in config.fetch.headers.items() if is_credential(name)}
    if loose:
        for origin in _origins_of_seeds(config, next(iter(loose))):
            rule = rules.get(origin, RequestRule())
            headers = {name: reveal(value, f"fetch.headers: {name}") for name, value in loose.items()}
            rules[origin] = replace(rule, headers={**headers, **rule.headers})
    return rules


def _reveal_rule(rule: RequestRule, key: str) -> RequestRule:
    def read(value: object, name: str) -> object:
        match value:
            case str():
                return reveal(value, f"{key}: {name}")
            case dict():
                return {inner: read(one, inner) for inner, one in value.items()}
        return value

    given = {
        name: read(value, name) if keys_of(RequestRule)[name].key.secret else value
        for name, value in to_table(rule).items()
    }
    return convert(RequestRule, given)


def common_headers(config: Config) -> dict[str, str]:
    """Return the headers of every request: those of `fetch.headers` that carry no credentials."""
    return {name: value for name, value in config.fetch.headers.items() if not is_credential(name)}


def _origins_of_seeds(config: Config, name: str) -> list[str]:
    seeds = config.seeds
    origins = list(dict.fromkeys(map(origin_of, seeds.urls)))
    others = (seeds.file, seeds.requests_file, seeds.domains_file, seeds.segments, seeds.watch_directory)
    if len(origins) != 1 or any(others):
        example = origins[0] if origins else "https://example.org"
        raise ConfigError(
            f"fetch.headers: {name} is a credential, and the seeds are not all of one origin; "
            f'name its origin: [request."{example}"] headers = {{{name} = "env:NAME"}}'
        )
    [origin] = origins
    is_plain = origin.startswith("http://") and ":" not in origin.removeprefix("http://")
    return [origin, origin.replace("http://", "https://", 1)] if is_plain else [origin]


def _redact_rule(value: object) -> object:
    value = _plain(value)
    if not isinstance(value, Mapping):
        return REDACTED if value else value
    return {
        name: _redact_within(one, lambda key: key.lower() not in OPEN, name)
        if name in SECRET_VALUES
        else _redact_within(one, lambda _: False)
        for name, one in value.items()
    }


def _plain(value: object) -> object:
    return to_table(value) if isinstance(value, Section) else value


def _redact_within(value: object, is_secret: Callable[[str], bool], name: str = "") -> object:
    match value:
        case str():
            hides = bool(value) and is_secret(name) and not is_reference(value)
            return REDACTED if hides else redact_user_info(value)
        case list() | tuple():
            return type(value)(_redact_within(one, is_secret, name) for one in value)
        case Mapping():
            return {key: _redact_within(one, is_secret, str(key)) for key, one in value.items()}
    return value
