-- Questions in the shape in which Metabase writes them: every name in quotes with its schema, months and bins computed,
-- a "source" around what was filtered or joined first.
-- | data=rides

--- rides by station
SELECT "public"."rides"."origin" AS "origin", COUNT(*) AS "count"
FROM "public"."rides"
GROUP BY "public"."rides"."origin"
ORDER BY "public"."rides"."origin" ASC

--- one number
-- Metabase:: userID: 4 queryType: MBQL queryHash: 71f2
SELECT SUM("public"."rides"."price") AS "sum" FROM "public"."rides"

--- a month's name for each day
SELECT CAST(DATE_TRUNC('month', "public"."rides"."started") AS date) AS "started", COUNT(*) AS "count"
FROM "public"."rides"
WHERE "public"."rides"."member" = TRUE
GROUP BY CAST(DATE_TRUNC('month', "public"."rides"."started") AS date)
ORDER BY CAST(DATE_TRUNC('month', "public"."rides"."started") AS date) ASC

--- weeks
SELECT DATE_TRUNC('week', "public"."rides"."started") AS "started", AVG("public"."rides"."minutes") AS "avg"
FROM "public"."rides"
GROUP BY DATE_TRUNC('week', "public"."rides"."started")
ORDER BY DATE_TRUNC('week', "public"."rides"."started") ASC

--- bins of kilometres
SELECT FLOOR("public"."rides"."km" / 2.5) * 2.5 AS "km", COUNT(*) AS "count"
FROM "public"."rides"
GROUP BY FLOOR("public"."rides"."km" / 2.5) * 2.5
ORDER BY FLOOR("public"."rides"."km" / 2.5) * 2.5 ASC

--- joined stations
SELECT "Stations - Origin"."district" AS "Stations - Origin__district", SUM("public"."rides"."price") AS "sum"
FROM "public"."rides"
LEFT JOIN "public"."stations" AS "Stations - Origin" ON "public"."rides"."origin" = "Stations - Origin"."name"
GROUP BY "Stations - Origin"."district"
ORDER BY "Stations - Origin"."district" ASC

--- a source that filters
SELECT "source"."target" AS "target", AVG("source"."km") AS "avg"
FROM (
  SELECT "public"."rides"."id" AS "id", "public"."rides"."target" AS "target", "public"."rides"."km" AS "km"
  FROM "public"."rides"
  WHERE "public"."rides"."minutes" > 30
) AS "source"
GROUP BY "source"."target"
ORDER BY "source"."target" ASC

--- a source that is summarised
SELECT "source"."origin" AS "origin", "source"."count" AS "count"
FROM (
  SELECT "public"."rides"."origin" AS "origin", COUNT(*) AS "count"
  FROM "public"."rides"
  GROUP BY "public"."rides"."origin"
) AS "source"
WHERE "source"."count" > 480
ORDER BY "source"."count" DESC, "source"."origin" ASC
LIMIT 2000

--- the average of groups
SELECT AVG("source"."sum") AS "avg"
FROM (
  SELECT "public"."rides"."target" AS "target", SUM("public"."rides"."price") AS "sum"
  FROM "public"."rides"
  GROUP BY "public"."rides"."target"
) AS "source"

--- a share
SELECT "public"."rides"."origin" AS "origin",
  CAST(SUM(CASE WHEN "public"."rides"."member" = TRUE THEN 1 ELSE 0.0 END) AS float) / CAST(NULLIF(COUNT(*), 0) AS float)
  AS "share of members"
FROM "public"."rides"
GROUP BY "public"."rides"."origin"
ORDER BY "public"."rides"."origin" ASC

--- day of the week
SELECT CAST(EXTRACT(dow FROM "public"."rides"."started") AS integer) + 1 AS "started",
  COUNT(DISTINCT "public"."rides"."rider") AS "count"
FROM "public"."rides"
GROUP BY CAST(EXTRACT(dow FROM "public"."rides"."started") AS integer) + 1
ORDER BY CAST(EXTRACT(dow FROM "public"."rides"."started") AS integer) + 1 ASC

--- a range of moments | dialect=postgres
SELECT COUNT(*) AS "count" FROM "public"."rides"
WHERE ("public"."rides"."started" >= timestamp with time zone '2024-02-01 00:00:00.000Z')
  AND ("public"."rides"."started" < timestamp with time zone '2024-03-01 00:00:00.000Z')
--- plain
SELECT COUNT(*) FROM rides WHERE started >= TIMESTAMP '2024-02-01' AND started < TIMESTAMP '2024-03-01'

--- values of a filter
SELECT "public"."stations"."district" AS "district" FROM "public"."stations"
GROUP BY "public"."stations"."district" ORDER BY "public"."stations"."district" ASC LIMIT 1000

--- a running total
SELECT "source"."started" AS "started",
  SUM("source"."count") OVER (ORDER BY "source"."started" ASC ROWS UNBOUNDED PRECEDING) AS "cumulative"
FROM (
  SELECT DATE_TRUNC('month', "public"."rides"."started") AS "started", COUNT(*) AS "count"
  FROM "public"."rides" GROUP BY DATE_TRUNC('month', "public"."rides"."started")
) AS "source"
ORDER BY "source"."started" ASC

--- up to now
SELECT COUNT(*) AS "count" FROM "public"."rides"
WHERE "public"."rides"."started" < DATE_TRUNC('month', NOW())
--- plain
SELECT COUNT(*) FROM rides
