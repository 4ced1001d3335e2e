"""Live: the keys that may change while the crawl runs, and what a change of them makes of a configuration."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from msgspec.structs import replace

from gossamer.config.gather import reopen_text
from gossamer.config.secret import holds_secrets
from gossamer.config.sections import Config, key_of
from gossamer.config.toml import effective_toml, to_toml
from gossamer.model.errors import ConfigError
from gossamer.model.verbs import ChangedKey
from gossamer.options import to_table
from gossamer.url.join import absolute
from gossamer.world.files import write_whole

FILE = "crawl.toml"
ORIGIN = "gossamer set"
HOST = "host"
"""The section whose keys are hosts."""


def change(config: Config, assignments: Iterable[str]) -> tuple[Config, list[ChangedKey]]:
    """Return the configuration with `key=value` texts applied, and what that changed. About 20 ms. Raises ConfigError:
    a line for each mistake: a key is unknown (with the nearest right name), a value is invalid, or a key cannot change
    while the crawl runs. Nothing changed then.
    """
    texts = list(assignments)
    new = assign(config, texts)
    found = [
        ChangedKey(key, _to_toml(config.value(key)), _to_toml(new.value(key)))
        for key in dict.fromkeys((*config.all_keys(), *new.all_keys()))
        if config.value(key) != new.value(key)
    ]
    # A key that was named comes before those whose defaults follow from it.
    named = {text.partition("=")[0].strip() for text in texts}
    fixed = min((one for one in found if not key_of(one.key).live), key=lambda one: one.key not in named, default=None)
    if fixed is not None:
        raise ConfigError(
            f"{fixed.key} cannot change while the crawl runs; stop it, then "
            f"gossamer resume DIR --set '{fixed.key}={fixed.after or 'none'}' changes it"
        )
    origins = new.origins
    origins.update({change.key: ORIGIN for change in found})
    return new.with_origins(origins), found


def assign(config: Config, assignments: Iterable[str]) -> Config:
    """Return the configuration with `key=value` texts applied, also of keys that cannot change while the crawl runs.
    Raises ConfigError: a line for each mistake.
    """
    try:
        return reopen_text(effective_toml(config), FILE, sets=assignments)
    except ConfigError as error:
        lines = (line.removeprefix("--set: ").removeprefix("--set ") for line in error.lines)
        raise ConfigError(*(line.replace("write --set ", "write ") for line in lines)) from error


def for_host(config: Config, host: str, values: Mapping[str, object]) -> str:
    """Return the assignment that gives a host `values` beside those that it has; None takes one away. Raises
    ConfigError: there is no such value for a host.
    """
    host = (absolute(f"http://{host.strip()}/") or "")[len("http://") : -1].removesuffix(".") or host
    override = config.host.overrides.get(host)
    merged = {**(to_table(override) if override is not None else {}), **values}
    kept = {name: value for name, value in merged.items() if value is not None}
    return f"{HOST}.{host}={to_toml(kept)}" if kept else f"{HOST}.{host}=none"


def workers_of(given: str) -> int:
    """Return a number of shards from the form that options have. Raises ValueError."""
    read = key_of("cluster.workers").read
    return int(read(given) if read is not None else given)


def with_workers(config: Config, workers: int) -> Config:
    """Return a configuration for another number of shards."""
    cluster = replace(config.cluster, workers=workers)
    return replace(config, cluster=cluster).with_origins(config.origins | {"cluster.workers": "gossamer scale"})


def save(config: Config, directory: Path) -> None:
    """Write a crawl's effective configuration; one that holds secrets is readable by its owner alone."""
    write_whole(directory / FILE, effective_toml(config).encode(), private=holds_secrets(config))


def _to_toml(value: object) -> str:
    return "" if value is None else to_toml(value)


class Settings:
    """The configuration in force. Its live keys change while the crawl runs."""

    def __init__(self, config: Config, apply: Callable[[Config, Config], None]) -> None:
        """`apply` is called with the configurations before and after a change."""
        self.config = config
        self._apply = apply

    def change(self, config: Config) -> None:
        """Adopt a configuration that differs only in live keys. Call this between two epochs."""
        before = self.config
        self.config = config
        self._apply(before, config)
