-- Queries of past.py, below a line with the name of each. What stands in braces is filled in.

-- span
SELECT min(epoch(committed_at)), max(epoch(committed_at)) FROM epochs WHERE epoch(committed_at) < {before}

-- steps
-- Sums are those of a shard's whole crawl: the last in each step says where it stood.
SELECT floor((epoch(committed_at) - {begun}) / {step})::BIGINT AS step, shard, max(epoch(committed_at)), max(pages),
    max(attempts), max(wire_bytes), arg_max(queued, committed_at)
FROM epochs WHERE epoch(committed_at) < {before} GROUP BY 1, 2 ORDER BY 1, 2

-- slowest
SELECT host, attempts, mean_s FROM hosts WHERE fetches >= 3 ORDER BY mean_s DESC, host LIMIT {limit}

-- failing
-- The reason is that of most failures; equal statuses have texts that differ.
SELECT host::VARCHAR, sum(n)::BIGINT AS n, sum(n) FILTER (outcome = 'host_closed') AS closed,
    max({{'n': n, 'last': last, 'reason': reason}}).reason
FROM (
    SELECT host, outcome, count(*) AS n, max(fetched_at) AS last,
        arg_max(CASE WHEN error <> '' THEN error ELSE outcome::VARCHAR END, fetched_at) AS reason
    FROM pages
    WHERE outcome IN ('dns_error', 'connect_error', 'tls_error', 'timeout', 'protocol_error', 'host_closed',
        'robots_unreachable', 'http_error', 'too_large', 'challenged', 'process_crashed')
    GROUP BY host, outcome, status
) GROUP BY 1 ORDER BY n DESC, 1 LIMIT {limit}

-- last
SELECT epoch(fetched_at), url, outcome::VARCHAR, status, coalesce(media_type::VARCHAR, ''), body_bytes, fetch_s,
    depth, attempt, coalesce(title, ''), coalesce(error, '')
FROM pages WHERE outcome {which} {well} ORDER BY fetched_at DESC, url LIMIT {limit}
