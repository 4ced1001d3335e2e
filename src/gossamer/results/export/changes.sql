-- Queries of changes.py, below a line with the name of each. What stands in braces is filled in.

-- changes
SELECT {columns} FROM judged
WHERE epoch_us(fetched_at) >= {since} AND kind IN ('appeared', 'changed', 'vanished') ORDER BY fetched_at, url

-- versions
SELECT {columns} FROM judged WHERE key = ? ORDER BY fetched_at, warc_file, warc_offset

-- noted
SELECT *, CASE WHEN coalesce(change, '') <> '' THEN change
    WHEN outcome = 'fetched' THEN 'appeared' ELSE '' END AS kind
FROM pages

-- compared
-- Batch crawls and imports leave the column empty. Imports may hold several captures of a page. The first visit of a
-- continuous crawl that began as a batch crawl is `unknown`: the digests of both rows tell.
SELECT *, CASE
    WHEN coalesce(change, '') NOT IN ('', 'unknown') THEN change
    WHEN change = 'unknown' AND noted <> '' THEN ''
    WHEN outcome = 'not_modified' THEN 'same'
    WHEN outcome = 'fetched' AND coalesce(before, '') = '' THEN 'appeared'
    WHEN outcome = 'fetched' THEN if(before = digest, 'same', 'changed')
    WHEN status IN (404, 410) AND before <> '' THEN 'vanished' ELSE '' END AS kind
FROM (
    SELECT *, last_value(
        CASE WHEN outcome = 'fetched' THEN digest WHEN status IN (404, 410) THEN '' END IGNORE NULLS
    ) OVER earlier AS before, last_value(coalesce(change, '')) OVER earlier AS noted FROM pages
    WINDOW earlier AS (
        PARTITION BY key ORDER BY fetched_at, warc_file, warc_offset
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    )
)

-- field
SELECT epoch_us(fetched_at), url, item, '{field}', before, after FROM (
    SELECT fetched_at, url, item, "{field}"::VARCHAR AS after,
        lag("{field}"::VARCHAR) OVER versions AS before, row_number() OVER versions AS version
    FROM rows WINDOW versions AS (PARTITION BY key, item ORDER BY fetched_at)
)
WHERE version > 1 AND before IS DISTINCT FROM after AND epoch_us(fetched_at) >= {since}
