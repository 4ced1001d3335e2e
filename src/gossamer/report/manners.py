"""Manners: what robots.txt forbade, and how long hosts and addresses were left alone between requests."""

from __future__ import annotations

from gossamer.report.figures import Gaps, Manners
from gossamer.report.tables import Tables

_REFUSED = """
    SELECT count(*) FILTER (outcome = 'robots_denied'), count(DISTINCT host) FILTER (outcome = 'robots_denied'),
        count(*) FILTER (outcome = 'robots_unreachable'), count(*) FILTER (outcome = 'excluded'),
        count(*) FILTER (status IN (429, 503))
    FROM pages"""
# Only what was asked for: what robots.txt denied, or what could not be looked up, was no request.
_GAPS = """
    WITH turns AS (
        SELECT began_s - lag(ended_s) OVER (PARTITION BY {who} ORDER BY began_s) AS gap_s
        FROM pages WHERE fetch_s > 0 AND ip <> '')
    SELECT count(gap_s), coalesce(min(gap_s), 0), coalesce(approx_quantile(gap_s, 0.5), 0), coalesce(avg(gap_s), 0),
        count(*) FILTER (gap_s < 0)
    FROM turns WHERE gap_s IS NOT NULL"""


def manners(tables: Tables) -> Manners:
    """Return the summary. A sort of all rows by host, and one by address: about 1 s per million pages each."""
    denied, hosts, unreachable, excluded, busy = tables.one(_REFUSED)
    host_gaps, address_gaps = (Gaps(*tables.one(_GAPS, who=who)) for who in ("host", "ip"))
    return Manners(denied, hosts, unreachable, excluded, busy, host_gaps, address_gaps)
