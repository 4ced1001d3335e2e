"""List pages that are copies of others, or nearly so: `python near_duplicates.py crawl`.

Near-duplicates are looked for while crawling: `gossamer crawl … --set seen.near_scope=shard`.
"""

import sys

import duckdb

rows = duckdb.sql(f"""
    SELECT coalesce(nullif(duplicate_of, ''), near_duplicate_of) AS original, list(url ORDER BY url) AS urls,
        bool_and(duplicate_of <> '') AS exact
    FROM read_parquet('{sys.argv[1]}/pages/*.parquet', union_by_name = true)
    WHERE outcome = 'fetched' AND (duplicate_of <> '' OR near_duplicate_of <> '')
    GROUP BY original ORDER BY len(urls) DESC, original
""").fetchall()
for original, urls, exact in rows:
    print(original, "has copies:" if exact else "is nearly the same as:")
    print(*(f"    {url}" for url in urls), sep="\n")
print(sum(len(urls) for _, urls, _ in rows), "pages repeat", len(rows), "others")
