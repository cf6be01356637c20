-- Questions in the shape in which Tableau writes them: each table with its own name as an alias, measures called "sum:x:ok",
-- GROUP BY places, HAVING COUNT(1) > 0 behind a filter, casts around all that is computed.
-- | data=shop

--- sales by channel
SELECT "invoices"."channel" AS "channel", SUM("invoices"."total") AS "sum:total:ok"
FROM "public"."invoices" "invoices"
GROUP BY 1

--- only where there is something
SELECT SUM("invoices"."total") AS "TEMP(sum)", COUNT(1) AS "cnt"
FROM "public"."invoices" "invoices"
WHERE ("invoices"."status" = 'paid')
HAVING (COUNT(1) > 0)

--- years
SELECT CAST(TRUNC(EXTRACT(YEAR FROM "invoices"."day")) AS INTEGER) AS "yr:day:ok", SUM("invoices"."total") AS "sum:total:ok"
FROM "public"."invoices" "invoices"
GROUP BY 1

--- months cut off
SELECT DATE_TRUNC('MONTH', CAST("invoices"."day" AS TIMESTAMP)) AS "tmn:day:ok", COUNT(1) AS "cnt:invoices:ok"
FROM "public"."invoices" "invoices"
GROUP BY 1

--- two dimensions
SELECT "invoices"."channel" AS "channel", "invoices"."status" AS "status", AVG("invoices"."total") AS "avg:total:ok"
FROM "public"."invoices" "invoices"
GROUP BY 1, 2
ORDER BY 1 ASC, 2 ASC

--- a calculated ratio
SELECT "customers"."segment" AS "segment",
  (CASE WHEN (CAST(COUNT("customers"."id") AS DOUBLE PRECISION) = 0) THEN NULL
   ELSE SUM("customers"."points") / CAST(COUNT("customers"."id") AS DOUBLE PRECISION) END) AS "usr:Calculation_1:ok"
FROM "public"."customers" "customers"
GROUP BY 1

--- a join of two tables
SELECT "customers"."segment" AS "segment", SUM("invoices"."total") AS "sum:total:ok"
FROM "public"."customers" "customers"
  INNER JOIN "public"."invoices" "invoices" ON ("customers"."id" = "invoices"."customer_id")
GROUP BY 1

--- a star of tables
SELECT "categories"."name" AS "category", SUM("invoice_lines"."quantity") AS "sum:quantity:ok"
FROM "public"."invoice_lines" "invoice_lines"
  INNER JOIN "public"."products" "products" ON ("invoice_lines"."product_id" = "products"."id")
  INNER JOIN "public"."categories" "categories" ON ("products"."category_id" = "categories"."id")
GROUP BY 1

--- the domain of a filter
SELECT "cities"."region" AS "region" FROM "public"."cities" "cities" GROUP BY 1 ORDER BY "region" ASC

--- the domain of a private column
SELECT "customers"."city" AS "city" FROM "public"."customers" "customers" GROUP BY 1 ORDER BY "city" ASC

--- the ends of a range
SELECT MIN("invoices"."day") AS "min", MAX("invoices"."day") AS "max"
FROM "public"."invoices" "invoices" HAVING (COUNT(1) > 0)

--- the largest of a dimension
SELECT "t0"."city" AS "city", "t0"."s" AS "sum:points:ok"
FROM (
  SELECT "customers"."city" AS "city", SUM("customers"."points") AS "s"
  FROM "public"."customers" "customers"
  GROUP BY 1
  ORDER BY 2 DESC
  LIMIT 3
) "t0"
ORDER BY 2 DESC

--- groups of a dimension
SELECT (CASE WHEN ("customers"."city" IN ('Aachen', 'Bremen', 'Husum')) THEN 'flat' ELSE 'hilly' END) AS "city (group)",
  COUNT(DISTINCT "customers"."id") AS "ctd:id:ok"
FROM "public"."customers" "customers"
GROUP BY 1

--- bins
SELECT CAST(FLOOR("customers"."points" / 250.0) * 250 AS INTEGER) AS "points (bin)", COUNT(1) AS "cnt"
FROM "public"."customers" "customers"
GROUP BY 1
