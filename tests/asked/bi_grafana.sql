-- Questions in the shape in which Grafana writes them: a column "time", buckets of the panel's interval, a metric's name, the
-- panel's range in WHERE, and variables filled in.
-- | data=rides

--- rides per hour
SELECT
  date_trunc('hour', started) AS "time",
  count(*) AS "rides"
FROM rides
WHERE started BETWEEN '2024-02-05T00:00:00Z' AND '2024-02-06T00:00:00Z'
GROUP BY 1
ORDER BY 1
--- plain
SELECT date_trunc('hour', started) AS t, count(*) FROM rides
WHERE started BETWEEN '2024-02-05 00:00:00' AND '2024-02-06 00:00:00'
GROUP BY 1 HAVING count(DISTINCT rider) > 1 ORDER BY 1

--- buckets of days by seconds
SELECT
  floor(extract(epoch from started)/86400)*86400 AS "time",
  avg(minutes) AS "minutes"
FROM rides
WHERE started >= '2024-01-01T00:00:00Z' AND started < '2024-01-11T00:00:00Z'
GROUP BY time
ORDER BY time
--- plain
SELECT floor(epoch(started) / 86400) * 86400 AS t, avg(minutes) FROM rides
WHERE started < '2024-01-11' GROUP BY t ORDER BY t

--- buckets by name | dialect=postgres
SELECT
  time_bucket('7 days', started) AS "time",
  count(*) AS "rides"
FROM rides
GROUP BY "time"
ORDER BY "time"
--- plain
SELECT time_bucket(INTERVAL '7 days', started) AS t, count(*) FROM rides GROUP BY t ORDER BY t

--- a metric for each series
SELECT
  date_trunc('day', started) AS time,
  origin AS metric,
  sum(km) AS value
FROM rides
WHERE started >= '2024-03-01' AND started < '2024-03-04'
GROUP BY 1, 2
ORDER BY 1, 2
--- plain
SELECT date_trunc('day', started) AS t, origin, sum(km) FROM rides
WHERE started >= '2024-03-01' AND started < '2024-03-04' GROUP BY 1, 2 ORDER BY 1, 2

--- a variable of several values
SELECT date_trunc('week', started) AS "time", count(*) AS "n"
FROM "public"."rides"
WHERE origin IN ('Park','Harbour') AND target = 'Bridge'
GROUP BY 1 ORDER BY 1 LIMIT 100

--- a variable's query
SELECT DISTINCT district FROM stations ORDER BY district

--- a variable's query with two columns
SELECT name AS __text, docks AS __value FROM stations ORDER BY name

--- a gauge
SELECT now() AS time, count(DISTINCT rider) AS riders FROM rides
--- plain
SELECT CURRENT_DATE, count(DISTINCT rider) FROM rides

--- a stat panel
SELECT round(avg(price), 2) AS "mean price", max(minutes) AS "longest" FROM "public"."rides"

--- a change from day to day
SELECT time, n - lag(n) OVER (ORDER BY time) AS change
FROM (SELECT date_trunc('month', started) AS time, count(*) AS n FROM rides GROUP BY 1) AS s
ORDER BY time

--- a moving average
WITH daily AS (
  SELECT date_trunc('week', started) AS time, count(*) AS n FROM rides GROUP BY 1
)
SELECT time, avg(n) OVER (ORDER BY time ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS smooth FROM daily ORDER BY time

--- percentiles | near=1.1
SELECT
  date_trunc('month', started) AS time,
  percentile_cont(0.5) WITHIN GROUP (ORDER BY minutes) AS p50,
  percentile_cont(0.95) WITHIN GROUP (ORDER BY minutes) AS p95
FROM rides GROUP BY 1 ORDER BY 1

--- milliseconds
SELECT extract(epoch from date_trunc('day', started)) * 1000 AS time, sum(price) AS value
FROM rides
WHERE extract(epoch from started) BETWEEN 1704067200 AND 1704326400
GROUP BY time
ORDER BY time

--- a table panel
SELECT origin AS "Station", count(*) AS "Rides", count(*) FILTER (WHERE member) AS "By members",
  count(*) FILTER (WHERE NOT member) AS "By others"
FROM public.rides GROUP BY origin ORDER BY "Rides" DESC, "Station"
