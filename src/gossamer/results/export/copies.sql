-- Queries of copies.py, below a line with the name of each. What stands in braces is filled in.

-- exact
WITH firsts AS (SELECT exact, min(n) AS first FROM texts GROUP BY exact HAVING count(*) > 1)
SELECT n, first FROM texts JOIN firsts USING (exact) WHERE n > first AND n >= {own} ORDER BY n

-- pairs
CREATE TABLE pairs AS
SELECT DISTINCT n, unnest([first, before]) AS other FROM (
    SELECT n, min(n) OVER (PARTITION BY band) AS first, lag(n) OVER (PARTITION BY band ORDER BY n) AS before
    FROM bands
) WHERE n > first AND n >= {own}

-- compared
SELECT n, other, one.signature, two.signature
FROM pairs JOIN texts AS one USING (n) JOIN texts AS two ON two.n = other ORDER BY n, other

-- found
SELECT removed.n - {own} AS n, one.url AS url, two.url AS of, how
FROM removed JOIN texts AS one USING (n) JOIN texts AS two ON two.n = root ORDER BY n
