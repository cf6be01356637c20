-- Questions in the shape in which Power BI writes them when it asks the database itself: TOP, a name "_" or "rows" around
-- each step, semantic filters that are never NULL, and the first 1,000,001 groups.
-- | data=shop

--- a card | dialect=tsql
SELECT SUM([t0].[total]) AS [a0]
FROM [public].[invoices] AS [t0]
--- plain
SELECT SUM(total) FROM invoices

--- a card in quotes
SELECT SUM("t0"."total") AS "a0" FROM "public"."invoices" AS "t0"

--- groups on top
SELECT TOP 1000001 "t0"."channel", SUM("t0"."total") AS "a0"
FROM "public"."invoices" AS "t0"
GROUP BY "t0"."channel"
--- plain
SELECT channel, SUM(total) FROM invoices GROUP BY channel

--- groups on top in another dialect | dialect=tsql
SELECT TOP (1000001) [t0].[segment], COUNT_BIG(*) AS [a0]
FROM [public].[customers] AS [t0]
GROUP BY [t0].[segment]
--- plain
SELECT segment, COUNT(*) FROM customers GROUP BY segment

--- a named step
SELECT "rows"."segment" AS "segment", SUM("rows"."points") AS "a0"
FROM (
  SELECT "segment", "points" FROM "public"."customers" AS "$Table"
) AS "rows"
GROUP BY "segment"

--- steps around a filter
SELECT "_"."channel", COUNT(1) AS "a0"
FROM (
  SELECT "_"."id", "_"."channel", "_"."status"
  FROM "public"."invoices" AS "_"
  WHERE "_"."status" = 'open' AND "_"."status" IS NOT NULL
) AS "_"
GROUP BY "_"."channel"

--- the outermost step
SELECT "_"."c1" AS "channel", "_"."a0" AS "a0"
FROM (
  SELECT "rows"."channel" AS "c1", SUM("rows"."total") AS "a0"
  FROM "public"."invoices" AS "rows" GROUP BY "rows"."channel"
) AS "_"
WHERE NOT ("_"."a0" IS NULL)
LIMIT 1000001

--- everything of everything
SELECT "basetable0"."a0" FROM (
  SELECT COUNT(*) AS "a0" FROM (SELECT * FROM "public"."customers" WHERE "newsletter" = TRUE) AS "t1"
) AS "basetable0"

--- largest first
SELECT "t1"."city", SUM("t0"."total") AS "a0"
FROM "public"."invoices" AS "t0" LEFT OUTER JOIN "public"."customers" AS "t1" ON ("t0"."customer_id" = "t1"."id")
GROUP BY "t1"."city"
ORDER BY "a0" DESC
OFFSET 0 ROWS FETCH FIRST 3 ROWS ONLY
--- plain
SELECT city, SUM(total) AS a0 FROM invoices JOIN customers ON customer_id = customers.id GROUP BY city ORDER BY a0 DESC LIMIT 3

--- a slicer
SELECT DISTINCT TOP 501 "t0"."region" FROM "public"."cities" AS "t0" ORDER BY "t0"."region"
--- plain
SELECT DISTINCT region FROM cities ORDER BY region

--- a slicer of a private table
SELECT DISTINCT "t0"."segment" FROM "public"."customers" AS "t0"

--- a matrix
SELECT "t0"."channel", "t0"."status", SUM("t0"."total") AS "a0", COUNT(DISTINCT "t0"."customer_id") AS "a1"
FROM "public"."invoices" AS "t0"
WHERE "t0"."day" >= DATE '2023-01-01' AND "t0"."day" < DATE '2024-01-01'
GROUP BY "t0"."channel", "t0"."status"

--- a date table
SELECT YEAR("t0"."day") AS "c0", MONTH("t0"."day") AS "c1", SUM(CAST("t0"."total" AS DOUBLE PRECISION)) AS "a0"
FROM "public"."invoices" AS "t0"
GROUP BY YEAR("t0"."day"), MONTH("t0"."day")
ORDER BY "c0", "c1"

--- a measure with a condition
SELECT SUM(CASE WHEN "t0"."status" = 'returned' THEN "t0"."total" ELSE 0 END) AS "a0", SUM("t0"."total") AS "a1"
FROM "public"."invoices" AS "t0"

--- totals beside groups
SELECT "channel", "a0" FROM (
  SELECT "channel", SUM("total") AS "a0" FROM "public"."invoices" GROUP BY "channel"
  UNION ALL
  SELECT NULL AS "channel", SUM("total") AS "a0" FROM "public"."invoices"
) AS "t"
