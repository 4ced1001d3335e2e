"""The command: `python -m gossamer.lab.simweb` serves a synthetic web on loopback."""

import argparse
import json
import sys
from pathlib import Path
from typing import get_args

from gossamer.lab.simweb.conformance import conformance, showcase, table
from gossamer.lab.simweb.log import read_log
from gossamer.lab.simweb.options import Preset, SimwebOptions
from gossamer.lab.simweb.server import Served, serve
from gossamer.lab.simweb.truth import Truth
from gossamer.lab.simweb.web import Web
from gossamer.options import OptionsError, convert, keys_of


def main(arguments: list[str] | None = None) -> int:
    """Serve until ended; return 2 where options or the system forbid it, 1 where a judged log is wrong."""
    given = _parser().parse_args(arguments)
    try:
        options = _options(given)
        if given.judge is not None:
            web = Web(options)
            rows = conformance(web, Truth(web).walk(web.seeds), read_log(given.judge))
            sys.stdout.write(table(rows) + "\n")
            return 0 if all(row.right for row in rows) else 1
        serve(
            options, log=given.log, hosts_file=given.hosts_file, ready=tell, until_stdin_closes=given.until_stdin_closes
        )
    except (ValueError, OSError) as error:
        says = "; ".join(map(str, error.mistakes)) if isinstance(error, OptionsError) else error
        sys.stderr.write(f"simweb: {says}\n")
        return 2
    return 0


def tell(served: Served) -> None:
    """Print the one line of JSON that says where the web is."""
    web = served.web
    facts = {
        "port": web.options.port,
        "dns": f"127.0.0.1:{served.dns_port}",
        "seeds": web.seeds,
        "hosts": len(web.hosts),
        "pages": sum(host.pages for host in web.hosts),
        "addresses": len(web.addresses),
        "names": [host.name for host in web.hosts[:10]],
    }
    sys.stdout.write(json.dumps(facts) + "\n")
    sys.stdout.flush()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="simweb", description="Serve a synthetic web on loopback.")
    parser.add_argument("--preset", choices=get_args(Preset), help="sizes to start from")
    for name in ("seed", "hosts", "pages", "port"):
        parser.add_argument(f"--{name}", type=int, help=keys_of(SimwebOptions)[name].key.what)
    parser.add_argument("--plain", action="store_true", help="no odd behaviour at all")
    parser.add_argument("--traps", action="store_true", help=keys_of(SimwebOptions)["traps"].key.what)
    parser.add_argument("--showcase", action="store_true", help="every behaviour, on a host of its own")
    parser.add_argument("--judge", type=Path, metavar="LOG", help="print what a request log shows, and serve nothing")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="any option, its value as JSON")
    parser.add_argument("--options", default="{}", metavar="JSON", help="options as one JSON object")
    parser.add_argument("--hosts-file", type=Path, help="write the names here, as in /etc/hosts")
    parser.add_argument("--log", type=Path, help="append the request log to this file")
    parser.add_argument("--until-stdin-closes", action="store_true", help="end when stdin ends")
    return parser


def _options(given: argparse.Namespace) -> SimwebOptions:
    values: dict[str, object] = json.loads(given.options)
    for pair in given.set:
        key, equals, value = pair.partition("=")
        if not equals:
            raise ValueError(f"--set takes KEY=VALUE, not {pair!r}")
        values[key] = _value(value)
    values |= {
        name: getattr(given, name) for name in ("seed", "hosts", "pages", "port") if getattr(given, name) is not None
    }
    if given.traps:
        values["traps"] = True
    if given.plain:
        values["behaviours"] = ()
    if given.showcase:
        return showcase(**values)
    return SimwebOptions.preset(given.preset, **values) if given.preset else convert(SimwebOptions, values)


def _value(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return text


if __name__ == "__main__":
    sys.exit(main())
