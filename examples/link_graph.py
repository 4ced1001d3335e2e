"""Rank the pages of a crawl by PageRank, in DuckDB: `python link_graph.py crawl`.

Brin and Page (1998), with damping 0.85. A page without links gives its rank to all pages.
"""

import sys

import duckdb

directory = sys.argv[1]
ROUNDS, DAMPING = 30, 0.85

db = duckdb.connect()
db.execute(f"""
    CREATE TABLE page AS
        SELECT DISTINCT ON (key) key, url, title FROM read_parquet('{directory}/pages/*.parquet', union_by_name = true)
        WHERE outcome = 'fetched' ORDER BY key, fetched_at;
    CREATE TABLE link AS
        SELECT DISTINCT source.key AS source, target.key AS target
        FROM read_parquet('{directory}/links/*.parquet', union_by_name = true) AS link
        JOIN page AS source ON source.url = link.from_url JOIN page AS target ON target.key = link.to_key
        WHERE NOT nofollow AND source.key <> target.key;
    CREATE TABLE degree AS SELECT source, count(*) AS links FROM link GROUP BY source;
    CREATE TABLE rank AS SELECT key, 1.0 / (SELECT count(*) FROM page) AS rank FROM page;
""")
for _ in range(ROUNDS):
    db.execute(f"""
        CREATE OR REPLACE TABLE rank AS
        WITH given AS (
            SELECT target AS key, sum(rank / links) AS rank
            FROM link JOIN rank ON rank.key = source JOIN degree USING (source) GROUP BY target
        ), kept AS (SELECT coalesce(sum(rank), 0) AS rank FROM rank ANTI JOIN degree ON degree.source = rank.key)
        SELECT page.key, ({1 - DAMPING} + {DAMPING} * kept.rank) / (SELECT count(*) FROM page)
            + {DAMPING} * coalesce(given.rank, 0) AS rank
        FROM page CROSS JOIN kept LEFT JOIN given USING (key)
    """)
for rank, url, title in db.execute(
    "SELECT rank, url, title FROM rank JOIN page USING (key) ORDER BY 1 DESC, 2"
).fetchmany(20):
    print(f"{rank:.4f}  {url}  {title}")
print("sum of all ranks:", round(db.execute("SELECT sum(rank) FROM rank").fetchone()[0], 6))
