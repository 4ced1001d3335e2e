"""Schemes: schemes of the operator's protocol modules, and the namer of addresses for a crawl's schemes and rules."""

import json

import msgspec

from gossamer.config import Config
from gossamer.model.errors import ConfigError
from gossamer.options import to_table
from gossamer.plugins import component
from gossamer.stages.robots.robots import WITHOUT
from gossamer.state.epoch import Epochs, load
from gossamer.state.schema import ADDED_SCHEMES, URL_RULES
from gossamer.url.name import SCHEMES, Namer

PORT_MAX = 65_535


def extra_ports(config: Config) -> dict[str, int]:
    """Return the default port of each added scheme, or 0. Raises ConfigError: a component or port is missing."""
    ports: dict[str, int] = {}
    for scheme, name in config.components.protocols.items():
        if scheme in SCHEMES:
            continue
        key = f"components.protocols.{scheme}"
        port = getattr(component(name, key), "default_port", None)
        if isinstance(port, bool) or not isinstance(port, int) or not 0 <= port <= PORT_MAX:
            raise ConfigError(f"{key}: {name} has no default_port; give it a number, 0 if every address has a port")
        ports[scheme] = port
    return ports


def without_robots(config: Config) -> tuple[str, ...]:
    """Return the prefixes of addresses without robots.txt: of added schemes whose module does not set `has_robots`."""
    added = [
        f"{scheme}://"
        for scheme in extra_ports(config)
        if not getattr(
            component(config.components.protocols[scheme], f"components.protocols.{scheme}"), "has_robots", False
        )
    ]
    return (*WITHOUT, *added)


def namer_for(config: Config) -> Namer:
    """Return the namer for a configuration's rules and schemes. Raises ConfigError: as `extra_ports`."""
    return Namer(config.url.canonicalizer(), extra_ports(config), config.url.split_sites)


def keep_schemes(config: Config, epochs: Epochs) -> None:
    """Require the added schemes that this crawl began with, because its queued addresses need them. More may be added.
    Raises ConfigError: a scheme is missing, or has another default port.
    """
    ports = extra_ports(config)
    begun = load(epochs, ADDED_SCHEMES, dict[str, int])
    for scheme, port in begun.items():
        key = f"components.protocols.{scheme}"
        if scheme not in ports:
            raise ConfigError(f"{key}: this crawl began with this scheme and keeps it; set it back")
        if ports[scheme] != port:
            raise ConfigError(f"{key}: this crawl began with the default port {port} and keeps it; set it back")
    if ports != begun:
        epochs.put("meta", ADDED_SCHEMES, msgspec.msgpack.encode(ports))


def namer_of(config: Config, epochs: Epochs) -> Namer:
    """Return the namer with the rules at the start of this crawl, by which all stored keys were made."""
    rules = url_rules(config)
    begun = epochs.get("meta", URL_RULES)
    if begun is None:
        epochs.put("meta", URL_RULES, rules)
    elif begun != rules:
        if (split := json.loads(begun).get("split_sites", [])) != list(config.url.split_sites):
            raise ConfigError(f"url.split_sites: this crawl began with {split} and keeps it; set it back")
        raise ConfigError("this crawl began with other rules in the section [url] and keeps them; set them back")
    keep_schemes(config, epochs)
    return namer_for(config)


def url_rules(config: Config) -> bytes:
    """Return the stored form of the rules by which a crawl names addresses."""
    # Default rules are written out, because they determine keys. Tables may get new keys, with defaults, later.
    return json.dumps({"rules": config.url.rules, **to_table(config.url)}).encode()
