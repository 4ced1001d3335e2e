"""Faults: faults of a crawled site: broken links, redirects, titles, descriptions, orphans."""

from __future__ import annotations

import csv
import html
import io
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from gossamer.model.outcomes import ANSWERED
from gossamer.results.export.changes import database_of
from gossamer.results.export.work import ExportPiece

NOT_CHECKED = "not_checked"
"""No fault: the link may be sound."""
KINDS: Mapping[str, str] = {
    "broken_link": "Broken links",
    "redirect_loop": "Redirect loops",
    "redirect_chain": "Redirect chains",
    "duplicate_title": "Duplicate titles",
    "missing_title": "Pages without title",
    "missing_description": "Pages without description",
    "orphan": "Pages of a sitemap that no page links to",
    NOT_CHECKED: "Links that could not be checked",
}
"""Kinds of fault with their headings, the worst first; the last is no fault."""
LINKING_MAX = 100
"""Pages listed that link to one URL."""

# A URL's last attempt counts. Names of columns that a crawl without the module `metadata` lacks are added.
_LATEST = """
    CREATE TEMP TABLE latest AS
    SELECT key, url, outcome::VARCHAR AS outcome, status, error, title, description, media_type::VARCHAR AS media_type,
        duplicate_of, link_type::VARCHAR AS link_type, referrer, host::VARCHAR AS host
    FROM (SELECT *{missing} FROM pages)
    QUALIFY row_number() OVER (PARTITION BY key ORDER BY fetched_at DESC, attempt DESC) = 1"""
_OWN = """
    CREATE TEMP VIEW own AS SELECT DISTINCT host FROM latest WHERE link_type NOT IN ('outlink', 'embed')"""
_DOCUMENTS = """
    CREATE TEMP VIEW documents AS SELECT * FROM latest
    WHERE outcome = 'fetched' AND media_type IN ('text/html', 'application/xhtml+xml') AND duplicate_of = ''
        AND host IN (FROM own)"""
# A reader finds the link to a redirect on a page, so that page links to what the redirect leads to.
_LINKING = """
    CREATE TEMP TABLE linking AS
    WITH RECURSIVE moved AS (
        SELECT DISTINCT page.key, links.to_key FROM links JOIN latest AS page ON page.url = links.from_url
        WHERE links.link_type::VARCHAR = 'redirect' AND page.outcome = 'redirected'
    ), behind AS (
        SELECT key, to_key FROM moved
        UNION SELECT behind.key, moved.to_key FROM behind JOIN moved ON moved.key = behind.to_key
    ), named AS (
        SELECT DISTINCT to_key, from_url FROM links WHERE link_type::VARCHAR NOT IN ('redirect', 'canonical', 'self')
    ), found AS (
        FROM named UNION SELECT behind.to_key, from_url FROM named JOIN behind ON behind.key = named.to_key
    )
    SELECT to_key AS key, list(from_url ORDER BY from_url)[1:{most}] AS pages FROM found GROUP BY to_key"""
_ANSWERED = f"regexp_matches(error, '{ANSWERED}')"
"""The server answered, without its robots.txt: the page may be there."""
_SHUT = "coalesce(status IN (401, 403, 999), false) AND (link_type = 'outlink' OR host NOT IN (FROM own))"
"""Another site wants a login, or no crawlers: a reader may see the page."""
_REFUSALS = "'payment_required', 'legally_blocked', 'login_required'"
_ATTEMPTS = """
    SELECT url, CASE WHEN status IS NULL OR outcome IN ({refusals}) THEN outcome || ': ' || error
            ELSE 'HTTP ' || status END
        || CASE WHEN link_type = 'redirect' THEN ', redirected from ' || referrer ELSE '' END,
        coalesce(pages, [one for one in [referrer] if one <> ''])
    FROM latest LEFT JOIN linking USING (key) WHERE {which} ORDER BY url"""
_BROKEN = _ATTEMPTS.format(
    refusals=_REFUSALS,
    which=f"outcome = 'http_error' AND status IS DISTINCT FROM 429 AND NOT ({_SHUT}) "
    "OR outcome IN ('dns_error', 'connect_error', 'tls_error', 'timeout', 'protocol_error') "
    f"OR outcome = 'robots_unreachable' AND NOT {_ANSWERED}",
)
_UNCHECKED = _ATTEMPTS.format(
    refusals=_REFUSALS,
    which=f"outcome = 'http_error' AND (status = 429 OR {_SHUT}) OR link_type <> 'seed' "
    f"AND (outcome IN ('robots_denied', 'challenged', 'host_closed', {_REFUSALS}) "
    f"OR outcome = 'robots_unreachable' AND {_ANSWERED})",
)
_TITLES = """
    SELECT first(url ORDER BY url), title, list(url ORDER BY url)[2:{most}] FROM documents
    WHERE title <> '' GROUP BY title HAVING count(*) > 1 ORDER BY 1"""
_UNTITLED = "SELECT url, '', NULL FROM documents WHERE title = '' ORDER BY url"
_UNDESCRIBED = "SELECT url, '', NULL FROM documents WHERE coalesce(description, '') = '' ORDER BY url"
_ORPHANS = """
    WITH named AS (SELECT DISTINCT to_key AS key FROM links WHERE link_type::VARCHAR = 'sitemap'),
    linked AS (
        SELECT DISTINCT to_key AS key FROM links LEFT JOIN latest AS page ON page.url = links.from_url
        WHERE links.link_type::VARCHAR NOT IN ('sitemap', 'sitemap_file', 'canonical', 'self')
            AND page.key IS DISTINCT FROM links.to_key
    )
    SELECT url, '', NULL FROM latest SEMI JOIN named USING (key) ANTI JOIN linked USING (key)
    WHERE link_type <> 'seed' ORDER BY url"""
_REDIRECTS = """
    SELECT page.key, links.to_key, page.url, links.to_url, linking.pages
    FROM links JOIN latest AS page ON page.url = links.from_url LEFT JOIN linking ON linking.key = page.key
    WHERE links.link_type::VARCHAR = 'redirect' AND page.outcome = 'redirected' ORDER BY page.url"""


class SiteFault(msgspec.Struct, frozen=True):
    """One fault of a site."""

    kind: str
    """One of `KINDS`. `not_checked` is no fault: its link may be sound."""
    url: str
    detail: str = ""
    pages: list[str] = []
    """Pages that link or redirect to it, or that share its title."""


def faults_of_site(tables: Mapping[str, Sequence[ExportPiece]], folder: Path) -> list[SiteFault]:
    """Return the faults of a crawled site, by kind, then by URL. `tables` has the files of `pages` and `links`.

    About 3 µs a row. Rows that do not fit in memory go to `folder`; redirects are held.
    """
    if not any(piece.rows for piece in tables["pages"]):
        return []
    with database_of([*tables["pages"], *tables["links"]], folder) as database:
        for name in ("pages", "links"):
            if files := [piece.path for piece in tables[name] if piece.rows]:
                database.read_parquet(files, union_by_name=True).create_view(name)
            else:
                database.execute("CREATE VIEW links AS SELECT '' AS from_url, '' AS to_url, '' AS to_key, '' AS "
                                 "link_type WHERE false")  # fmt: skip
        has = database.sql("SELECT * FROM pages LIMIT 0").columns
        database.execute(_LATEST.format(missing="" if "description" in has else ", NULL::VARCHAR AS description"))
        database.execute(_OWN)
        database.execute(_DOCUMENTS)
        database.execute(_LINKING.format(most=LINKING_MAX))
        questions = {
            "broken_link": _BROKEN, "duplicate_title": _TITLES.format(most=LINKING_MAX), "missing_title": _UNTITLED,
            "missing_description": _UNDESCRIBED, "orphan": _ORPHANS, NOT_CHECKED: _UNCHECKED,
        }  # fmt: skip
        found = [
            SiteFault(kind, url, detail, pages or [])
            for kind, question in questions.items()
            for url, detail, pages in database.execute(question).fetchall()
        ]
        found += _chains(database.execute(_REDIRECTS).fetchall())
    order = list(KINDS)
    return sorted(found, key=lambda one: (order.index(one.kind), one.url))


def _chains(rows: Sequence[tuple[Any, ...]]) -> Iterator[SiteFault]:
    """Yield chains of two and more redirects, from their first URL, and loops, each once."""
    following = {key: (target, url, to_url) for key, target, url, to_url, _ in rows}
    targets = {target for key, target, *_ in rows if target != key}
    looped: set[str] = set()
    for key, _, url, _, pages in sorted(rows, key=lambda row: row[0] in targets):
        path = [url]
        way = {key}
        at = key
        while at in following:
            at, _, to_url = following[at]
            path.append(to_url)
            if at in way:
                break
            way.add(at)
        shown = " → ".join(path)
        if at in following:  # It came round.
            if not way & looped:
                looped |= way
                yield SiteFault("redirect_loop", url, shown, pages or [])
        elif len(path) > 2 and key not in targets:
            yield SiteFault("redirect_chain", url, shown, pages or [])


def as_csv(faults: Sequence[SiteFault]) -> str:
    """Return one record a fault (RFC 4180): kind, URL, detail, and the pages, each on a line of its field."""
    out = io.StringIO(newline="")
    rows = csv.writer(out)
    rows.writerow(("fault", "url", "detail", "pages"))
    rows.writerows((one.kind, one.url, one.detail, "\n".join(one.pages)) for one in faults)
    return out.getvalue()


_PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>Faults of {site}</title><style>body{{font:15px/1.5 system-ui,sans-serif;max-width:70em;margin:2em auto;
padding:0 1em;overflow-wrap:anywhere}}table{{border-collapse:collapse;width:100%}}td{{border-top:1px solid #ccc;
padding:.3em .6em;vertical-align:top}}</style><main><h1>Faults of {site}</h1>{body}</main></html>
"""


def as_html(faults: Sequence[SiteFault], site: str) -> str:
    """Return a page with a table for each kind of fault. It loads nothing, and what it shows is escaped."""
    parts = []
    for kind, heading in KINDS.items():
        if rows := [one for one in faults if one.kind == kind]:
            lines = "".join(
                f"<tr><td>{html.escape(one.url)}<td>{html.escape(one.detail)}"
                f"<td>{'<br>'.join(map(html.escape, one.pages))}"
                for one in rows
            )
            parts.append(f"<h2>{heading}: {len(rows)}</h2><table>{lines}</table>")
    return _PAGE.format(site=html.escape(site), body="".join(parts) or "<p>No faults were found.")
