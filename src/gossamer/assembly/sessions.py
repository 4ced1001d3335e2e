"""Sessions: builds cookies and logins. Imported only if the configuration has some."""

import hashlib
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path

from msgspec.structs import replace

from gossamer.assembly.home import Home, lock_directory
from gossamer.assembly.integrity import open_store
from gossamer.config import Config
from gossamer.config.lists import read_text
from gossamer.engine.counters import CrawlCounters
from gossamer.features.logins.logins import FormLogins
from gossamer.features.logins.lost import LostSessions
from gossamer.features.logins.options import LoginRule
from gossamer.features.logins.sessions import Jars, Sessions, cookies_in
from gossamer.model.errors import ConfigError
from gossamer.stages.fetch.cookies import Cookie, netscape, of_file, site_of_cookie
from gossamer.stages.fetch.credentials import reveal
from gossamer.stages.fetch.options import where_of
from gossamer.stages.process.forms import is_selector
from gossamer.state.epoch import Epochs
from gossamer.state.schema import COOKIES_TAKEN, PARTITIONED
from gossamer.url.name import Namer
from gossamer.url.site import site_of
from gossamer.url.url import Url

COOKIES_BYTES_MAX = 16 << 20
"""Of a file of cookies: a browser keeps some thousands of at most 4 KB."""


def sessions(
    config: Config,
    epochs: Epochs,
    namer: Namer,
    is_ours: Callable[[Url], bool],
    counters: CrawlCounters,
    unpark: Callable[[Url, float], None],
    now: float,
) -> Sessions:
    """Return a shard's sessions. `is_ours` is true for its URLs; `unpark` lets a host go on that waits for a login.
    Raises ConfigError: a login cannot work, or a file cannot be read.
    """
    rules = {
        name: replace(rule, fields={key: reveal(value, f"login.{name}: {key}") for key, value in rule.fields.items()})
        for name, rule in config.login.rules.items()
    }
    sites = {_site_of(name, rule, namer) for name, rule in rules.items()}
    jars = Jars(epochs, None if config.cookies.is_on else frozenset(sites))
    has_taken = epochs.get("meta", COOKIES_TAKEN) is not None  # Then its file may have been deleted since.
    given: set[str] | None = None
    if config.cookies.file and not (has_taken and not Path(config.cookies.file).exists()):
        text = read_text(Path(config.cookies.file), COOKIES_BYTES_MAX)
        cookies = of_file(text, config.cookies.file, now)

        def holds(host: str) -> bool:
            url = namer.name(f"http://{host}/")
            return url is not None and is_ours(url)

        given = {site_of_cookie(cookie) for cookie in cookies}
        jars.take_in(cookies, hashlib.sha256(text.encode()).digest(), is_ours=holds)
    made = Sessions(jars)
    counters.totals.warned.pop(LostSessions.name, None)  # Those of the last run.
    if rules:
        pauses_s = config.frontier.retry_s_first, config.frontier.retry_s_max
        made.logins = FormLogins(rules, namer, epochs, made.headers, made.names, pauses_s, counters.warn, unpark)
    if config.cookies.file:
        renews = made.logins.covers if made.logins is not None else lambda _: False
        made.lost = LostSessions(given, lambda site: bool(list(jars.of(site))), renews, counters.warn)
    return made


def netscape_file(config: Config, homes: Iterable[Home]) -> str:
    """Return the cookies of shards as a Netscape file. Raises ConfigError if a shard is running."""
    return netscape(cookie for home in homes for cookie in _read_cookies(config, home))


def _read_cookies(config: Config, home: Home) -> list[Cookie]:
    with lock_directory(home.directory, state=home.state, reading=True) as lock:
        home.require_state()
        with closing(open_store(config, home, writable=lock.writable)) as store:
            return cookies_in(store.scan("cookie", *PARTITIONED))


def _site_of(name: str, rule: LoginRule, namer: Namer) -> str:
    """Return the site of a login. Raises ConfigError if its parts do not fit together."""
    url = namer.name(rule.url)
    if url is None:
        raise ConfigError(f"login.{name}: {rule.url!r} is no URL; write that of the page with the form")
    if rule.place and site_of(where_of(rule.place)["host"]) != url.site:
        raise ConfigError(f"login.{name}: place {rule.place} is not on the site of url ({url.site}); name one there")
    for key, selector in (("form", rule.form), ("logged_out", rule.logged_out)):
        if selector and not is_selector(selector):
            raise ConfigError(f"login.{name}: {key} {selector!r} is no CSS selector")
    return url.site
