"""The tables of a crawl in polars, pandas and DuckDB, without a copy on disk: `python frames.py crawl`."""

import sys
from importlib.util import find_spec

import duckdb

import gossamer

tables = gossamer.Tables(sys.argv[1])

if find_spec("polars"):
    pages = tables.pages.to_polars("outcome = 'fetched'")
    print("polars:", pages.group_by("depth").len().sort("depth").rows())
if find_spec("pandas"):
    frame = tables.pages.to_pandas("outcome = 'fetched'")
    print("pandas:", frame.groupby("depth").size().to_dict())

db = duckdb.connect()
links = tables.links.to_duckdb(connection=db)
print("most linked:", links.aggregate("to_key, count(*) AS links").order("links DESC, to_key").limit(1).fetchall()[0])
