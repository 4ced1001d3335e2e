"""Watching: the command `watch`: a continuous crawl that reports changes to a command, a webhook or a feed."""

import json
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit
from xml.sax.saxutils import escape

from typer import Option, Typer, echo

from gossamer.cli.arguments import ConfigFile, Sets, quantity_of
from gossamer.cli.crawl import with_flags
from gossamer.cli.directory import holds_crawl
from gossamer.cli.output import Exit, complain, harmless
from gossamer.cli.recipes import ShowConfig, Url, directory_of, run_recipe
from gossamer.model.errors import ConfigError, CrawlFailedError
from gossamer.model.words import counted
from gossamer.world.files import write_whole

commands = Typer()
EVENTS = ("appeared", "changed", "vanished", "field")
OVERLAP_S = 600.0
"""Longest time from the begin of a visit to its commit: changes of this time are compared with those reported."""
SEND_S_MAX = 30.0
PENDING_MAX = 10_000
"""Changes held for a receiver that fails; the oldest are dropped."""
FEED_ITEMS_MAX = 100
EVERY_S_MAX = 86_400 * 365

Change = dict[str, object]


@commands.command("watch")
@with_flags()
def watch(
    urls: Url = None,
    command: Annotated[
        str, Option("--command", metavar="CMD", help="Run a shell command with changes as JSON lines on stdin.")
    ] = "",
    webhook: Annotated[str, Option("--webhook", metavar="URL", help="POST changes as JSON.")] = "",
    rss: Annotated[Path | None, Option("--rss", metavar="FILE", help="Write changes to an RSS feed.")] = None,
    events: Annotated[
        str, Option("--events", metavar="LIST", help="Kinds of change: appeared, changed, vanished, field.")
    ] = "changed,vanished,field",
    every: Annotated[str, Option("--every", metavar="S", help="Time between reports, such as 1h.")] = "60s",
    config: ConfigFile = None,
    sets: Sets = None,
    show_config: ShowConfig = False,
    **options: object,
) -> int:
    """Crawl a site continuously, and report changes.

    Changes are those of `gossamer changes`: pages, and fields of [extract]. The command continues a crawl that the
    directory holds.
    """
    wanted = kinds_of(events)
    if webhook and not is_web_address(webhook):
        raise ConfigError(f"--webhook {webhook}: expected an http or https address")
    every_s = quantity_of("--every", every, "seconds")
    if not 0 < every_s <= EVERY_S_MAX:
        bound = f"at most {EVERY_S_MAX} seconds" if every_s > 0 else "more than 0 seconds"
        raise ConfigError(f"--every {every}: expected {bound}")
    directory = directory_of("watch", options)
    receivers = [Receiver("the terminal", lambda found: echo("\n".join(map(sentence, found))))]
    if command:
        receivers.append(Receiver("--command", lambda found: _run(command, found)))
    if webhook:
        receivers.append(Receiver("--webhook", lambda found: post(webhook, found)))
    if rss is not None:
        feed = RssFile(rss, urls[0] if urls else directory.absolute().as_uri())
        receivers.append(Receiver("--rss", feed.add, begins=True))
    if not (options.get("quiet") or options.get("json") or options.get("log_format")):
        sets = ["progress.style='plain'", *(sets or ())]  # Reports are lines too.
    reports = Reports(directory, wanted, receivers)
    ended = threading.Event()

    def report() -> None:
        while not ended.wait(every_s):
            reports.look()

    reporting = threading.Thread(target=report, daemon=True)
    if not show_config:
        reporting.start()
    status: int = Exit.INTERRUPTED
    try:
        status = run_recipe("watch", urls, config, sets, options, show_config=show_config)
    finally:
        ended.set()
        if not show_config:
            reporting.join(2 * SEND_S_MAX)
            if status != Exit.REFUSED:  # Changes of a crawl that another command runs are for that one to report.
                reports.look()  # What the last commit holds.
    return status


def kinds_of(events: str) -> frozenset[str]:
    """Return the kinds of change in a list. Raises ConfigError."""
    wanted = frozenset(filter(None, events.split(",")))
    if (unknown := sorted(wanted - set(EVENTS))) or not wanted:
        raise ConfigError(f"--events {unknown[0] if unknown else repr(events)}: expected {', '.join(EVENTS)}")
    return wanted


def is_web_address(text: str) -> bool:
    """Return whether a text is an http or https address that can be requested."""
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


class Receiver:
    """Takes changes; what it fails to take is sent again with the next ones."""

    def __init__(self, name: str, send: Callable[[Sequence[Change]], None], *, begins: bool = False) -> None:
        """With `begins` the first report is sent even if it holds no changes."""
        self._name = name
        self._send = send
        self._pending: list[Change] = []
        self._begins = begins

    def take(self, found: Sequence[Change]) -> None:
        """Send changes and what is pending; say on standard error why that failed."""
        self._pending = [*self._pending, *found][-PENDING_MAX:]
        if not (self._pending or self._begins):
            return
        try:
            self._send(self._pending)
        except Exception as error:  # noqa: BLE001 - one receiver's failure must not end the reports
            number = len(self._pending)
            held = f"{counted(number, 'change')} {'is' if number == 1 else 'are'} sent again"
            complain(f"{self._name} failed ({error}); {held if number else 'it is tried again'} with the next report")
        else:
            self._pending = []
            self._begins = False


class Reports:
    """The changes of a crawl since this was made, each reported once."""

    def __init__(self, directory: Path, events: frozenset[str], receivers: Sequence[Receiver]) -> None:
        self._directory = directory
        self._events = events
        self._receivers = receivers
        self._since = datetime.fromtimestamp(time.time(), UTC)
        self._seen: dict[tuple[object, ...], str] = {}

    def look(self) -> None:
        """Report what is new, and what receivers did not take. A crawl that begins has no changes yet."""
        from gossamer.api.reading import changes

        if not holds_crawl(self._directory):
            return
        found: list[Change] = []
        try:
            for one in changes(self._directory, self._since.isoformat()):
                change = one.as_object()
                known = (one.at, one.url, change.get("items"), change.get("item"), change.get("field"))
                if one.change in self._events and known not in self._seen:
                    self._seen[known] = one.at
                    found.append(change)
        except (ConfigError, CrawlFailedError, OSError):
            pass  # Files are being made, renamed or converted: the next look sees them.
        if found:
            self._since = max(self._since, datetime.fromisoformat(str(found[-1]["at"])) - timedelta(seconds=OVERLAP_S))
            begin = f"{self._since:%Y-%m-%dT%H:%M:%S.%f}Z"
            self._seen = {known: at for known, at in self._seen.items() if at >= begin}
        for receiver in self._receivers:
            receiver.take(found)


class RssFile:
    """An RSS 2.0 file with the latest changes."""

    def __init__(self, file: Path, site: str) -> None:
        self._file = file
        self._site = site
        self._items: list[Change] = []

    def add(self, found: Sequence[Change]) -> None:
        """Write the file with these changes first. Without any, a file of an earlier command stays as it is."""
        if not found and self._file.exists():
            return
        kept = [*reversed(found), *self._items][:FEED_ITEMS_MAX]
        items = "".join(
            f"<item><title>{escape(sentence(one))}</title><link>{escape(harmless(one['url']))}</link>"
            f'<guid isPermaLink="false">{escape(harmless(guid(one)))}</guid>'
            f"<pubDate>{datetime.fromisoformat(str(one['at'])):%a, %d %b %Y %H:%M:%S} GMT</pubDate></item>"
            for one in kept
        )
        site = escape(harmless(self._site))
        head = f"<title>Changes of {site}</title><link>{site}</link><description>Changes of {site}</description>"
        text = f'<?xml version="1.0" encoding="utf-8"?>\n<rss version="2.0"><channel>{head}{items}</channel></rss>\n'
        write_whole(self._file, text.encode())
        self._items = kept


def sentence(change: Change) -> str:
    """Return a change for people, with nothing in it that a terminal obeys."""
    if change["change"] != "field":
        return harmless(f"{change['change']}: {change['url']}")
    before, after = ("nothing" if one is None else str(one) for one in (change["before"], change["after"]))
    what = f"{change['items']} {change['item']}: {change['field']} changed from {before} to {after}"
    return harmless(f"{what} ({change['url']})")


def guid(change: Change) -> str:
    """Return a unique name of a change."""
    return " ".join(str(change.get(name, "")) for name in ("at", "url", "items", "item", "field"))


def _run(command: str, found: Sequence[Change]) -> None:
    lines = "".join(f"{json.dumps(one)}\n" for one in found)
    subprocess.run(command, shell=True, input=lines, text=True, check=True, timeout=SEND_S_MAX)  # noqa: S602 - the operator's


def post(address: str, found: Sequence[Change]) -> None:
    """Send changes as JSON. Raises OSError, or what `http.client` does: they did not arrive."""
    from urllib import request

    # No redirects: `urlopen` would send a GET without the changes to their target.
    opener = request.OpenerDirector()
    for handler in (
        request.ProxyHandler, request.HTTPHandler, request.HTTPSHandler, request.HTTPDefaultErrorHandler,
        request.HTTPErrorProcessor,
    ):  # fmt: skip
        opener.add_handler(handler())
    body = json.dumps({"changes": found}).encode()
    with opener.open(request.Request(address, body, {"Content-Type": "application/json"}), timeout=SEND_S_MAX):  # noqa: S310 - the operator's own address
        pass
