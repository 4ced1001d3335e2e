-- Queries of browse.py, below a line with the name of each. What stands in braces is filled in.

-- visit
SELECT key, epoch_us(fetched_at), url, outcome::VARCHAR, status, coalesce(title, ''), coalesce(digest, ''),
coalesce(body_bytes, 0), coalesce(media_type::VARCHAR, ''), coalesce(warc_type::VARCHAR, ''),
coalesce(redirect_to, ''), coalesce(duplicate_of, ''), coalesce(rendered, ''), warc_file::VARCHAR, warc_offset, warc_length

-- originals
SELECT digest, arg_max(struct_pack(f := warc_file::VARCHAR, o := warc_offset, l := warc_length), fetched_at)
FROM pages WHERE warc_offset IS NOT NULL AND warc_type <> 'revisit' AND digest IN (SELECT unnest(?)) GROUP BY 1

-- last
SELECT key, arg_max(struct_pack(u := url, o := outcome::VARCHAR, d := coalesce(digest, ''), s := status,
    t := left(coalesce(title, ''), {characters})), fetched_at) AS last FROM {pages} GROUP BY key

-- compared
CREATE TABLE compared AS
WITH one AS ({first}), two AS ({second})
SELECT coalesce(two.last.u, one.last.u) AS url, one.last.o AS before, two.last.o AS after, two.last.s AS status,
    coalesce(two.last.t, one.last.t) AS title, CASE
        WHEN coalesce(one.last.o IN ({content}), false) THEN CASE
            WHEN NOT coalesce(two.last.o IN ({content}), false) THEN 'gone'
            WHEN one.last.d <> two.last.d THEN 'changed' ELSE 'same' END
        WHEN coalesce(two.last.o IN ({content}), false) THEN 'new' ELSE '' END AS change
FROM one FULL JOIN two USING (key)

-- listed
SELECT url, title, coalesce(before, ''), coalesce(after, ''), status FROM compared WHERE change = ?
ORDER BY url LIMIT ? OFFSET ?
