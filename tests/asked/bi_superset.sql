-- Questions in the shape in which Superset writes them: a virtual data set called "virtual_table" around what an analyst
-- wrote, time grains, the largest series found by an inner query, a limit on every question.
-- | data=rides

--- a big number
SELECT COUNT(*) AS count
FROM public.rides
LIMIT 50000

--- time grain of a day
SELECT DATE_TRUNC('day', started) AS __timestamp, COUNT(*) AS count
FROM public.rides
WHERE started >= TO_TIMESTAMP('2024-01-08 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US')
  AND started < TO_TIMESTAMP('2024-01-15 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US')
GROUP BY DATE_TRUNC('day', started)
ORDER BY __timestamp ASC
LIMIT 10000
--- plain
SELECT DATE_TRUNC('day', started) AS t, COUNT(*) FROM rides
WHERE started >= TIMESTAMP '2024-01-08' AND started < TIMESTAMP '2024-01-15' GROUP BY t ORDER BY t

--- a virtual table
SELECT origin AS origin, AVG(price) AS "AVG(price)"
FROM (
  SELECT origin, price, rider FROM rides WHERE member
) AS virtual_table
GROUP BY origin
ORDER BY "AVG(price)" DESC
LIMIT 100

--- everything of a virtual table
SELECT SUM(minutes) AS "SUM(minutes)"
FROM (SELECT * FROM public.rides WHERE km > 5) AS virtual_table
LIMIT 50000

--- a virtual table that is grouped
SELECT origin AS origin, sum(n) AS "SUM(n)"
FROM (SELECT origin, target, COUNT(*) AS n FROM rides GROUP BY origin, target) AS virtual_table
GROUP BY origin
ORDER BY "SUM(n)" DESC, origin
LIMIT 10

--- rows of a grouped table
SELECT * FROM (SELECT target, COUNT(DISTINCT rider) AS riders FROM rides GROUP BY target) AS virtual_table
ORDER BY target LIMIT 1000

--- several measures
SELECT target AS target, member AS member, COUNT(*) AS count, SUM(price) AS revenue, AVG(km) AS "AVG(km)",
  COUNT(DISTINCT rider) AS riders
FROM public.rides
GROUP BY target, member
ORDER BY revenue DESC
LIMIT 50000

--- the largest series
SELECT DATE_TRUNC('month', started) AS __timestamp, origin AS origin, SUM(price) AS revenue
FROM public.rides
JOIN (
  SELECT origin AS origin__, SUM(price) AS mme_inner__ FROM public.rides GROUP BY origin
  ORDER BY mme_inner__ DESC LIMIT 3
) AS series_limit ON origin = origin__
GROUP BY DATE_TRUNC('month', started), origin
ORDER BY revenue DESC
LIMIT 10000

--- a filter of values
SELECT origin AS origin FROM public.rides GROUP BY origin ORDER BY origin LIMIT 1000

--- a measure of its own SQL
SELECT origin AS origin, SUM(price) * 1.0 / NULLIF(SUM(km), 0) AS "price per km"
FROM public.rides GROUP BY origin ORDER BY origin LIMIT 50000

--- a pivot table
SELECT origin AS origin, target AS target, MAX(minutes) AS "MAX(minutes)"
FROM public.rides WHERE origin IN ('Park', 'Castle') AND target IN ('Bridge', 'Market')
GROUP BY origin, target ORDER BY origin, target LIMIT 50000

--- a histogram
SELECT CASE WHEN minutes < 30 THEN 'short' WHEN minutes < 60 THEN 'medium' ELSE 'long' END AS bucket, COUNT(*) AS count
FROM public.rides
GROUP BY CASE WHEN minutes < 30 THEN 'short' WHEN minutes < 60 THEN 'medium' ELSE 'long' END
ORDER BY count DESC LIMIT 50000

--- having rows
SELECT target AS target, AVG(rating) AS "AVG(rating)" FROM public.rides
GROUP BY target HAVING COUNT(*) > 100 ORDER BY target LIMIT 50000

--- a share of all
SELECT origin, n, CAST(n AS DOUBLE PRECISION) / SUM(n) OVER () AS share
FROM (SELECT origin, COUNT(*) AS n FROM rides GROUP BY origin) AS virtual_table
ORDER BY origin LIMIT 100

--- by the hour | dialect=postgres
SELECT EXTRACT(HOUR FROM started) AS hour, COUNT(*) AS count FROM public.rides
GROUP BY EXTRACT(HOUR FROM started) ORDER BY hour ASC LIMIT 1000
