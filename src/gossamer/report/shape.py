"""Shape: how large documents and hosts are, in powers of two, and which domains they are of."""

from __future__ import annotations

from gossamer.report.figures import Bucket, Domain
from gossamer.report.tables import Tables

DOMAINS_MAX = 10_000

_BUCKETS = """
    SELECT CASE WHEN size > 0 THEN (1::BIGINT << floor(log2(size))::INTEGER) ELSE 0 END AS least, count(*),
        sum(size)::BIGINT
    FROM ({sizes}) GROUP BY 1 ORDER BY 1"""
_DOCUMENTS = "SELECT body_bytes AS size FROM pages WHERE outcome = 'fetched'"
_PAGES = "SELECT fetched AS size FROM hosts"
_BYTES = "SELECT bytes AS size FROM hosts"
_DOMAINS = r"""
    SELECT CASE WHEN host LIKE '[%' OR regexp_full_match(host, '[0-9.]+') THEN '(address)'
        ELSE regexp_extract(host, '[^.]+$') END AS name, count(*), sum(fetched)::BIGINT AS pages
    FROM hosts GROUP BY 1 ORDER BY pages DESC, 2 DESC, 1 LIMIT {limit}"""


def document_sizes(tables: Tables) -> tuple[Bucket, ...]:
    """Return pages fetched by the size of their content."""
    return _buckets(tables, _DOCUMENTS)


def hosts_by_pages(tables: Tables) -> tuple[Bucket, ...]:
    """Return hosts by pages fetched."""
    return _buckets(tables, _PAGES)


def hosts_by_bytes(tables: Tables) -> tuple[Bucket, ...]:
    """Return hosts by bytes received."""
    return _buckets(tables, _BYTES)


def domains(tables: Tables) -> tuple[Domain, ...]:
    """Return the top-level domains by pages; of more than `DOMAINS_MAX` the first ones."""
    rows = tables.all(_DOMAINS, limit=DOMAINS_MAX)
    return tuple(Domain(name or "(none)", hosts, pages) for name, hosts, pages in rows)


def _buckets(tables: Tables, sizes: str) -> tuple[Bucket, ...]:
    found = {row[0]: Bucket(*row) for row in tables.all(_BUCKETS, sizes=sizes)}
    if not found:
        return ()
    first, last = min(found), max(found)
    places = [first, *(1 << power for power in range(last.bit_length()) if 1 << power > first)]
    return tuple(found.get(least) or Bucket(least, 0, 0) for least in places)
