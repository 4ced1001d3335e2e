"""Identity: what a crawl publishes: a page for the owners of sites, and the directory of the keys that sign."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from gossamer.config import Config
from gossamer.features.identity.keys import read_keys
from gossamer.features.identity.signing import directory_headers, directory_of
from gossamer.model.errors import ConfigError
from gossamer.model.extras import require
from gossamer.model.product import __version__

if TYPE_CHECKING:
    from gossamer.features.identity.keys import SigningKey

DIRECTORY_PATH = "/.well-known/http-message-signatures-directory"
PAGE_PATH = "/about-this-crawl"
_STYLE = (
    "body{font:1rem/1.5 system-ui,sans-serif;max-width:42rem;margin:2rem auto;padding:0 1rem;color:#1a1a1a}"
    "pre,code{background:#f3f3f3;padding:.1rem .3rem}pre{padding:.6rem;overflow-x:auto}"
)


def crawl_page(config: Config) -> CrawlPage:
    """Return the page about a crawl. Raises ConfigError: operator.contact is not set."""
    operator = config.operator
    if not operator.contact:
        raise ConfigError("operator.contact is not set; the page needs a mail address or a URL")
    return CrawlPage(
        operator.user_agent(__version__),
        operator.contact,
        config.robots.tokens,
        config.identity.about,
        operator.purpose,
        config.identity.directory if config.identity.key_file else "",
        config.robots.obey,
    )


def key_directory(config: Config, now: float) -> tuple[bytes, dict[str, str]] | None:
    """Return the key directory and the headers to serve it with; None if requests are not signed. Some ms. Raises
    ConfigError: the key file cannot be read.
    """
    options = config.identity
    return directory_of_files([options.key_file], options.directory, now) if options.key_file else None


def directory_of_files(key_files: Sequence[str], origin: str, now: float) -> tuple[bytes, dict[str, str]]:
    """Return the key directory of crawls that name one origin, each key once. A file that cannot be read is left out.
    Raises ConfigError: no key file can be read.
    """
    require("cryptography", "identity.key_file")
    found: dict[str, SigningKey] = {}
    errors = []
    for file in dict.fromkeys(key_files):
        try:
            found.update((key.id, key) for key in read_keys(Path(file)))
        except ConfigError as error:
            errors.append(error)
    if not found:
        raise errors[0]
    keys = list(found.values())
    document = directory_of(keys, now)
    return document, directory_headers(document, keys, origin, now)


class CrawlPage(msgspec.Struct, frozen=True):
    """Content of the page about a crawl."""

    agent: str
    """The User-Agent header."""
    contact: str
    """A mail address or a URL."""
    tokens: tuple[str, ...]
    """Product tokens that robots.txt files may use."""
    about: str = ""
    purposes: tuple[str, ...] = ()
    directory: str = ""
    """The origin of the key directory; empty if requests are not signed."""
    obeys_robots: bool = True

    def html(self, *others: CrawlPage) -> str:
        """Return the page: one file, without scripts. All values are escaped. `others` follow on the same page."""
        parts = [part for page in dict.fromkeys((self, *others)) for part in page.parts()]
        return (
            '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n'
            '<meta name="viewport" content="width=device-width,initial-scale=1">\n'
            f"<title>About this crawler</title>\n<style>{_STYLE}</style>\n<main>\n"
            + "\n".join(parts)
            + "\n</main>\n</html>\n"
        )

    def parts(self) -> Iterator[str]:
        """Yield what the page says, as markup."""
        yield "<h1>About this crawler</h1>"
        yield f"<p>Its requests have this User-Agent header:</p>\n<pre>{escape(self.agent)}</pre>"
        yield f"<h2>Who runs it</h2>\n<p>Contact: {_link(self.contact)}</p>"
        if self.about or self.purposes:
            yield "<h2>Why it crawls</h2>"
        if self.about:
            yield f"<p>{escape(self.about)}</p>"
        if self.purposes:
            yield f"<p>Declared purposes: {escape(', '.join(self.purposes))}.</p>"
        yield "<h2>How to refuse it</h2>"
        if self.obeys_robots:
            lines = [f"User-agent: {token}" for token in self.tokens]
            yield (
                "<p>It obeys robots.txt (RFC 9309) and <code>Crawl-delay</code>. These lines close a site to it; the "
                f"crawl reads them within a day:</p>\n<pre>{escape(chr(10).join([*lines, 'Disallow: /']))}</pre>"
            )
        yield f"<p>Or write to {_link(self.contact)}: the operator can exclude a host from a running crawl.</p>"
        if self.directory:
            yield (
                "<h2>How to recognize it</h2>\n<p>Each request is signed with HTTP Message Signatures (RFC 9421, tag "
                f"<code>web-bot-auth</code>). The public keys are at {_link(self.directory + DIRECTORY_PATH)}. "
                "A request with this User-Agent and without a valid signature is not from this crawler.</p>"
            )


def _link(text: str) -> str:
    """Return a link to a URL or a mail address; of anything else the text alone."""
    shown = escape(text)
    if text.startswith(("https://", "http://", "mailto:")):
        return f'<a href="{shown}">{shown}</a>'
    return f'<a href="mailto:{shown}">{shown}</a>' if "@" in text else shown
