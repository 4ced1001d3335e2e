-- Queries of sections.py, below a line with the name of each. What stands in braces is filled in.

-- steps
SELECT floor((ended_s - {begun}) / {step})::BIGINT AS step, count(*), count(*) FILTER (outcome = 'fetched'),
    coalesce(sum(wire_bytes), 0)::BIGINT
FROM pages GROUP BY 1 ORDER BY 1

-- silences
-- By whole seconds first: as many groups as the crawl has seconds, for any number of pages.
WITH seconds AS (
    SELECT floor(ended_s - {begun})::BIGINT AS second, min(ended_s) AS first_s, max(ended_s) AS last_s
    FROM pages GROUP BY 1),
gaps AS (SELECT lag(last_s) OVER (ORDER BY second) AS since, first_s FROM seconds)
SELECT since - {begun}, first_s - since AS lasted, sum(first_s - since) OVER ()
FROM gaps WHERE first_s - since >= {least} ORDER BY lasted DESC LIMIT {limit}

-- commit_steps
SELECT floor((epoch(committed_at) - {begun}) / {step})::BIGINT AS step, max(took_s) FROM epochs GROUP BY 1

-- queues
SELECT floor((epoch(committed_at) - {begun}) / {step})::BIGINT AS step, shard,
    coalesce(arg_max(queued, committed_at), 0)
FROM epochs GROUP BY 1, 2 ORDER BY 1

-- commits
SELECT count(*), avg(took_s), approx_quantile(took_s, 0.99), max(took_s), max(cut_s) FROM epochs
HAVING count(*) > 0

-- buckets
SELECT CASE WHEN size > 0 THEN (1::BIGINT << floor(log2(size))::INTEGER) ELSE 0 END AS least, count(*),
    sum(size)::BIGINT
FROM ({sizes}) GROUP BY 1 ORDER BY 1

-- domains
SELECT CASE WHEN host LIKE '[%' OR regexp_full_match(host, '[0-9.]+') THEN '(address)'
    ELSE regexp_extract(host, '[^.]+$') END AS name, count(*), sum(fetched)::BIGINT AS pages
FROM hosts GROUP BY 1 ORDER BY pages DESC, 2 DESC, 1 LIMIT {limit}

-- refused
SELECT count(*) FILTER (outcome = 'robots_denied'), count(DISTINCT host) FILTER (outcome = 'robots_denied'),
    count(*) FILTER (outcome = 'robots_unreachable'), count(*) FILTER (outcome = 'excluded'),
    count(*) FILTER (status IN (429, 503))
FROM pages

-- gaps
-- Requests alone: a denial by robots.txt or a failed lookup sends none.
WITH turns AS (
    SELECT began_s - lag(ended_s) OVER (PARTITION BY {who} ORDER BY began_s) AS gap_s
    FROM pages WHERE fetch_s > 0 AND ip <> '' AND {slice})
SELECT CASE WHEN gap_s > 0 THEN floor({steps} * log2(gap_s))::INTEGER END AS step, count(*), sum(gap_s), min(gap_s),
    count(*) FILTER (gap_s < 0)
FROM turns WHERE gap_s IS NOT NULL GROUP BY 1

-- at_once
-- Where two instants are equal, the request that ends comes first.
WITH changes AS (
    SELECT {who} AS who, unnest([began_s, ended_s]) AS instant_s, unnest([1, -1]) AS change
    FROM pages WHERE fetch_s > 0 AND ip <> '' AND {slice})
SELECT max(at_once) FROM (SELECT sum(change) OVER (PARTITION BY who ORDER BY instant_s, change
    ROWS UNBOUNDED PRECEDING)::BIGINT AS at_once FROM changes)

-- stated
SELECT count(*) FROM pages WHERE outcome IN ('fetched', 'usage_withheld')

-- uses
SELECT {sums} FROM pages WHERE outcome IN ('fetched', 'usage_withheld')

-- statements
-- The text of each line before its first colon: source and kind. Groups: the kinds, of which there are few.
SELECT kind, count(*) FROM (
    SELECT unnest(list_distinct(string_split(
        regexp_replace(usage_statements::VARCHAR, ': [^\n]*', '', 'g'), chr(10)))) AS kind
    FROM pages WHERE outcome IN ('fetched', 'usage_withheld') AND usage_statements <> '')
GROUP BY 1 ORDER BY 2 DESC, 1

-- sums
SELECT {sums} FROM epochs

-- fetched_s
SELECT coalesce(sum(fetch_s), 0) FROM pages
