-- Queries of report.py, below a line with the name of each. What stands in braces is filled in.

-- last_outcomes
SELECT key, arg_max(outcome::VARCHAR, epoch(fetched_at) + attempt * 1e-6) FROM pages GROUP BY key

-- totals
SELECT count(*) AS attempts, count(*) FILTER (outcome = 'fetched') AS fetched,
    count(*) FILTER (attempt > 1) AS repeated, count(*) FILTER (attempt <= 1) AS visits,
    count(*) FILTER (outcome = 'fetched' AND duplicate_of <> '') AS duplicates,
    coalesce(sum(body_bytes) FILTER (outcome = 'fetched' AND duplicate_of <> ''), 0)::BIGINT AS duplicate_bytes,
    count(*) FILTER (near_duplicate_of <> '') AS near_duplicates,
    count(*) FILTER (outcome = 'trapped') AS trapped, count(*) FILTER (truncated <> '') AS truncated,
    count(*) FILTER (outcome = 'fetched' AND truncated <> '') AS pages_truncated,
    coalesce(avg(body_bytes) FILTER (outcome = 'fetched'), 0) AS body_bytes_mean,
    coalesce(sum(wire_bytes), 0)::BIGINT AS wire_bytes, coalesce(sum(body_bytes), 0)::BIGINT AS body_bytes,
    coalesce(sum(warc_length), 0)::BIGINT AS warc_bytes,
    min(began_s) AS begun_at, max(ended_s) AS ended_at
FROM pages

-- links
SELECT count(*), count(*) FILTER (split_part(from_url, '/', 1) = split_part(to_url, '/', 1)
    AND split_part(from_url, '/', 3) = split_part(to_url, '/', 3)) FROM links

-- sites
SELECT count(DISTINCT site) FROM hosts WHERE {slice}

-- urls
-- By the key's hash, for its eight bytes are all that a group holds of it.
SELECT last, count(*), count(*) FILTER (succeeded), count(*) FILTER (visits > 1) FROM (
    SELECT arg_max(outcome::VARCHAR, began_s + attempt * 1e-6) AS last,
        bool_or(outcome IN ('fetched', 'not_modified')) AS succeeded, count(*) FILTER (attempt <= 1) AS visits
    FROM pages WHERE {slice} GROUP BY hash(key))
GROUP BY 1

-- fetch_times
SELECT avg(fetch_s), approx_quantile(fetch_s, 0.5), approx_quantile(fetch_s, 0.9), approx_quantile(fetch_s, 0.99),
    max(fetch_s)
FROM pages WHERE fetch_s > 0

-- of_pages
SELECT {name}, count(*) AS n FROM pages WHERE {where} GROUP BY 1 ORDER BY {order}

-- link_types
SELECT link_type::VARCHAR AS name, count(*) AS n FROM links GROUP BY 1 ORDER BY n DESC, 1

-- per_host
SELECT host, attempts, fetched, bytes, mean_s FROM hosts WHERE {where} ORDER BY {order}, host LIMIT {limit}

-- copied
SELECT duplicate_of, count(*) AS n, coalesce(sum(body_bytes), 0)::BIGINT
FROM pages WHERE {slice} AND outcome = 'fetched' AND duplicate_of <> ''
GROUP BY 1 ORDER BY n DESC, 1 LIMIT {limit}

-- troubles
SELECT outcome::VARCHAR, {kind} AS kind, count(*) AS n, min(url), arg_min(error, url), min(url, {few})
FROM pages WHERE outcome NOT IN ('fetched', 'not_modified', 'redirected') AND {slice}
GROUP BY 1, 2 ORDER BY n DESC, 1, 2 LIMIT {limit}
