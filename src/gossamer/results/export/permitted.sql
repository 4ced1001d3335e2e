-- Queries of permitted.py, below a line with the name of each. What stands in braces is filled in.

-- latest
-- A page that was fetched later and not kept is not what it was: its earlier copy is left out as well.
SELECT * FROM pages WHERE outcome IN ('fetched', 'usage_withheld')
QUALIFY row_number() OVER (PARTITION BY key ORDER BY fetched_at DESC, attempt DESC, url) = 1

-- written
outcome = 'fetched' AND {column} IN ({answers})

-- chosen
COPY (SELECT * FROM ({latest}) WHERE {written}) TO {target} (FORMAT parquet, COMPRESSION zstd)

-- listed
SELECT url, {column}::VARCHAR, usage_reason::VARCHAR, {written} FROM ({latest}) ORDER BY url

-- with_places
-- Equal bytes: the record of another page may hold the payload of a permitted one.
COPY (
    WITH firsts AS (
        SELECT digest, arg_max(struct_pack(f := warc_file, o := warc_offset, l := warc_length), fetched_at) AS at
        FROM pages WHERE warc_offset IS NOT NULL AND warc_type <> 'revisit'
            AND digest IN (SELECT digest FROM chosen WHERE warc_type = 'revisit')
        GROUP BY digest
    )
    SELECT c.*, o.at AS {original} FROM chosen AS c LEFT JOIN firsts AS o USING (digest)
) TO {target} (FORMAT parquet, COMPRESSION zstd)

-- with_originals
-- A revisit record needs its original, which is here where the original's page is permitted too.
COPY (
    WITH originals AS (
        SELECT p.* FROM pages AS p WHERE p.warc_type <> 'revisit' AND p.warc_offset IS NOT NULL
            AND p.key IN (SELECT key FROM chosen)
            AND EXISTS (FROM chosen AS c WHERE c.warc_type = 'revisit' AND c.digest = p.digest)
    ), held AS (SELECT * FROM chosen WHERE warc_type <> 'revisit' UNION SELECT * FROM originals)
    SELECT * FROM (
        FROM held UNION ALL
        SELECT c.* FROM chosen AS c WHERE c.warc_type = 'revisit'
            AND EXISTS (FROM held AS h WHERE h.digest = c.digest)
    ) WHERE warc_offset IS NOT NULL ORDER BY warc_file, warc_offset
) TO {target} (FORMAT parquet, COMPRESSION zstd)

-- of_chosen
COPY (SELECT t.* FROM read_parquet({files}, union_by_name = true) AS t
    WHERE t.{column} IN (SELECT url FROM chosen)) TO {target} (FORMAT parquet, COMPRESSION zstd)
