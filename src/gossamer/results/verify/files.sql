-- Queries of files.py, below a line with the name of each. What stands in braces is filled in.

-- unlike
SELECT one.file, count(*), min(one."offset"), arg_min(one.url, one."offset")
FROM ({wanted}) AS one LEFT JOIN records ON records.file = one.file AND records."offset" = one."offset"
WHERE one.file IN (SELECT DISTINCT file FROM records)
    AND (records."offset" IS NULL OR (records.what = '' AND records.length <> one.length))
GROUP BY 1 ORDER BY 1

-- broken
SELECT records.file, records."offset", what, max(coalesce(nullif(records.url, ''), one.url, ''))
FROM records LEFT JOIN ({known}) AS one ON records.file = one.file AND records."offset" = one."offset"
WHERE what <> '' GROUP BY 1, 2, 3 ORDER BY 1, 2

-- rows
SELECT warc_file::VARCHAR AS file, warc_offset AS "offset", warc_length AS length, url FROM pages
WHERE warc_offset IS NOT NULL

-- lines
SELECT file, "offset", length, url FROM lines
