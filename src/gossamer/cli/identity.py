"""Identity: `identity new|show|rotate|directory|page`: keys that sign requests, and what is published about a crawl."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option, Typer, echo

from gossamer.api.identity import crawl_page
from gossamer.cli.arguments import Json
from gossamer.cli.directory import write_file
from gossamer.cli.output import harmless, write_line
from gossamer.config import configure
from gossamer.config.sections import is_https_origin
from gossamer.features.identity.keys import new_keys, read_keys, rotate_keys, signing_key
from gossamer.features.identity.signing import directory_headers, directory_of
from gossamer.model.errors import ConfigError
from gossamer.model.extras import require
from gossamer.model.words import iso_time

if TYPE_CHECKING:
    from gossamer.features.identity.keys import SigningKey

commands = Typer(help="Manage the keys that sign requests, and publish who crawls.")

KEY_FILE = Path("identity.json")
STANDARD_OUTPUT = Path("-")
ConfigFile = Annotated[
    Path | None, Option("--config", "-c", metavar="FILE", help="Configuration with the section [identity].")
]
KeyPath = Annotated[
    Path | None, Option("--key", metavar="FILE", help="Key file, instead of identity.key_file (or identity.json).")
]
Target = Annotated[
    Path | None, Option("--output", "-o", metavar="FILE", help="File to write instead of standard output.")
]


@commands.command("new")
def new(config: ConfigFile = None, key: KeyPath = None) -> int:
    """Write a key file that only you can read."""
    path = _key_path(config, key)
    made = new_keys(path, time.time())
    echo(f"wrote {path} with the key {made.id}; keep it secret")
    echo("set identity.key_file to it and identity.directory to the https origin that publishes its directory")
    return 0


@commands.command("show")
def show(config: ConfigFile = None, key: KeyPath = None, as_json: Json = False) -> int:
    """Show the public keys, and which one signs."""
    path = _key_path(config, key)
    now = time.time()
    keys = read_keys(path)
    signing = signing_key(keys, now)
    found = [_facts(one, now, signs=one is signing) for one in keys]
    if as_json:
        write_line(sys.stdout, json.dumps(found, indent=2))
        return 0
    for facts in found:
        times = [f"{word} {facts[name]}" for word, name in (("from", "begins_at"), ("until", "ends_at")) if facts[name]]
        write_line(sys.stdout, harmless("  ".join([str(facts["keyid"]), str(facts["state"]), *times])))
    return 0


@commands.command("rotate")
def rotate(
    config: ConfigFile = None,
    key: KeyPath = None,
    now: Annotated[
        bool, Option("--now", help="Replace a disclosed key: the new one signs at once, old ones are deleted.")
    ] = False,
) -> int:
    """Add a key that signs after a day; the old one stays in the directory until its signatures have expired."""
    path = _key_path(config, key)
    made = rotate_keys(path, time.time(), at_once=now)
    echo(f"{path}: the key {made.id} signs from {iso_time(made.begins_at, zone='+00:00')}")
    echo("publish the directory again now: gossamer identity directory")
    return 0


@commands.command("directory")
def directory(
    config: ConfigFile = None,
    key: KeyPath = None,
    origin: Annotated[
        str, Option("--origin", metavar="ORIGIN", help="Publishing origin, instead of identity.directory.")
    ] = "",
    output: Target = None,
    headers: Annotated[
        Path | None, Option("--headers", metavar="FILE", help="File for the response headers, with signatures.")
    ] = None,
) -> int:
    """Write the key directory for /.well-known/http-message-signatures-directory."""
    path = _key_path(config, key)
    now = time.time()
    keys = read_keys(path)
    document = directory_of(keys, now)
    if headers is not None:
        origin = origin or (configure(config).identity.directory if config is not None else "")
        if not is_https_origin(origin):
            raise ConfigError(
                "--headers needs the origin that publishes the directory; name it, such as --origin https://bot.example.org"
            )
        lines = directory_headers(document, keys, origin, now)
        write_file(headers, "".join(f"{name}: {value}\n" for name, value in lines.items()), "--headers")
    # Without a newline at its end: the signatures are about these very bytes.
    write_file(output or STANDARD_OUTPUT, document.decode(), "-o")
    return 0


@commands.command("page")
def page(config: ConfigFile = None, output: Target = None) -> int:
    """Write a web page about the crawl: who, why, and how to refuse it."""
    if config is None:
        raise ConfigError("identity page: name the configuration of the crawl with -c FILE")
    write_file(output or STANDARD_OUTPUT, crawl_page(configure(config)).html(), "-o")
    return 0


def _key_path(config: Path | None, key: Path | None) -> Path:
    """Return the named key file. Raises ConfigError: cryptography is not installed."""
    require("cryptography", "identity")
    if key is not None:
        return key
    named = configure(config).identity.key_file if config is not None else ""
    if config is not None and not named:
        raise ConfigError(f"{config}: identity.key_file is not set; set it, or name the file with --key")
    return Path(named) if named else KEY_FILE


def _state_of(key: SigningKey, now: float, *, signs: bool) -> str:
    if signs:
        return "signs"
    if key.begins_at > now:
        return "later"
    return "published" if key.is_listed(now) else "expired"


def _facts(key: SigningKey, now: float, *, signs: bool) -> dict[str, object]:
    times = {"begins_at": key.begins_at, "ends_at": key.ends_at}
    return {
        "keyid": key.id,
        "state": _state_of(key, now, signs=signs),
        **{name: iso_time(at, zone="+00:00") if at else None for name, at in times.items()},
    }
