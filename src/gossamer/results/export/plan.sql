-- Queries of plan.py, below a line with the name of each. What stands in braces is filled in.

-- question
-- Successful fetches of a URL; a copy's payload is in any record with its digest. The page in `duplicate_of` may have
-- another one, of which the decoded content is the same.
COPY (
    WITH latest AS (
        SELECT * FROM pages WHERE outcome = 'fetched' AND warc_offset IS NOT NULL AND ({where})
        QUALIFY {every} OR row_number() OVER (PARTITION BY key ORDER BY fetched_at DESC, attempt DESC, url) = 1
    ), firsts AS (
        SELECT digest, arg_max(struct_pack(f := warc_file, o := warc_offset, l := warc_length), fetched_at) AS at
        FROM pages
        WHERE warc_offset IS NOT NULL AND warc_type <> 'revisit'
            AND digest IN (SELECT digest FROM latest WHERE warc_type = 'revisit')
        GROUP BY digest
    )
    SELECT {columns}, {document} AS document, {anchors} AS anchors, epoch_us(latest.fetched_at) AS "at",
        latest.warc_file AS file, latest.warc_offset AS "offset", latest.warc_length AS length,
        {original}.f AS original_file, {original}.o AS original_offset, {original}.l AS original_length,
        {found} AS found
    FROM latest LEFT JOIN firsts ON latest.digest = firsts.digest {joined}
    WHERE {own}
    ORDER BY file, "offset"
) TO {target} (
    FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE {group_rows}, ROW_GROUP_SIZE_BYTES {group_bytes})

-- anchors
-- What links say of a page: of all their texts those that are used most.
LEFT JOIN (
    SELECT to_key, string_agg(words, ' ' ORDER BY nth) AS words
    FROM (
        SELECT to_key, words, row_number() OVER (PARTITION BY to_key ORDER BY uses DESC, words) AS nth
        FROM (
            SELECT to_key, left(trim(anchor_text), {characters_max}) AS words, count(*) AS uses
            FROM links WHERE trim(anchor_text) <> '' GROUP BY 1, 2
        )
    )
    WHERE nth <= {texts_max} GROUP BY to_key
) AS said ON said.to_key = latest.key

-- document
CASE WHEN latest.text_method = 'document' THEN coalesce(latest.main_text, '') ELSE '' END

-- there
key NOT IN (
    SELECT key FROM pages GROUP BY key
    HAVING max(fetched_at) FILTER (change = 'vanished') > max(fetched_at) FILTER (outcome IN ('fetched', 'not_modified'))
)
