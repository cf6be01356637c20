-- As Redash, Mode, Qlik, Sigma, ThoughtSpot, dbt, MetricFlow and Hex write, and more of the six tools, in PostgreSQL's SQL.
-- | data=shop, dialect=postgres

--- histogram of superset
SELECT bin, COUNT(*) AS n FROM (SELECT WIDTH_BUCKET(total, 0, 500, 10) AS bin FROM public.invoices WHERE total IS NOT NULL) AS t GROUP BY bin HAVING COUNT(*) > 0 ORDER BY bin
--- plain
SELECT LEAST(FLOOR(total / 50) + 1, 11)::INT, COUNT(*) FROM invoices GROUP BY 1 ORDER BY 1

--- half an hour grain | data=rides
SELECT DATE_TRUNC('hour', started) + INTERVAL '30 minutes' * FLOOR(EXTRACT(MINUTE FROM started) / 30) AS t, COUNT(*) AS c FROM public.rides WHERE started >= '2024-01-08' AND started < '2024-01-09' GROUP BY DATE_TRUNC('hour', started) + INTERVAL '30 minutes' * FLOOR(EXTRACT(MINUTE FROM started) / 30) HAVING COUNT(*) > 0 ORDER BY 1

--- five minute grain | data=rides
SELECT DATE_TRUNC('minute', started) - (EXTRACT(MINUTE FROM started)::int % 15) * INTERVAL '1 minute' AS t, COUNT(*) AS c FROM rides WHERE started BETWEEN '2024-01-08' AND '2024-01-08 06:00:00' GROUP BY 1 HAVING COUNT(*) > 0 ORDER BY 1

--- redash cohort
SELECT date_trunc('year', c.joined) AS cohort, date_trunc('year', i.day) AS period, COUNT(DISTINCT i.customer_id) AS active FROM invoices i JOIN customers c ON c.id = i.customer_id GROUP BY 1, 2 ORDER BY 1, 2

--- mode definition cte
with orders as (
  select * from public.invoices where status = 'paid'
),
by_month as (
  select date_trunc('month', day)::date as month, count(*) as orders, sum(total) as revenue
  from orders
  group by 1
)
select month, orders, revenue, revenue / orders as aov, revenue - lag(revenue) over (order by month) as change
from by_month
order by 1

--- mode with sums in ratio
select channel, round(100.0 * sum(case when status = 'returned' then total end) / sum(total), 2) as pct from invoices group by 1 order by 1

--- union of metrics
select 'customers' as metric, count(*) as value from customers
union all
select 'invoices', count(*) from invoices
union all
select 'revenue', sum(total) from invoices

--- redash query filters
SELECT city AS "city::filter", segment AS "segment::multi-filter", COUNT(*) FROM customers GROUP BY 1, 2 ORDER BY 1, 2

--- top n by join
SELECT "customers"."city" AS "city", SUM("customers"."points") AS "sum:points:ok" FROM "public"."customers" "customers" INNER JOIN (SELECT "customers"."city" AS "city", SUM("customers"."points") AS "$__alias__0" FROM "public"."customers" "customers" GROUP BY 1 ORDER BY 2 DESC, 1 ASC LIMIT 3) "t0" ON ("customers"."city" = "t0"."city") GROUP BY 1
--- plain
SELECT city, SUM(points) FROM customers GROUP BY 1 QUALIFY ROW_NUMBER() OVER (ORDER BY SUM(points) DESC) <= 3

--- percent of total in a wrapper
SELECT "x"."channel", "x"."s" / SUM("x"."s") OVER () AS "pcto" FROM (SELECT "channel", SUM("total") AS "s" FROM "public"."invoices" GROUP BY 1) "x" ORDER BY 1

--- qlik load with where
SELECT "status", "channel", COUNT("id") AS "cnt", SUM("total") AS "sm" FROM "public"."invoices" WHERE ("day" >= '2024-01-01') AND ("day" <= '2024-12-31') GROUP BY "status", "channel"

--- sigma style
select CASE_0, count(1) as COUNT_1 from (select case when points >= 500 then true else false end as CASE_0, id from customers) Q1 group by CASE_0 order by CASE_0 limit 10001
--- plain
select points >= 500, count(1) from customers group by 1 order by 1

--- sigma levels
with Q1 as (select day as DAY_1, total as TOTAL_1, channel as CHANNEL_1 from public.invoices), Q2 as (select date_trunc('quarter', DAY_1) as Q, CHANNEL_1, sum(TOTAL_1) as S from Q1 group by date_trunc('quarter', DAY_1), CHANNEL_1), Q3 as (select CHANNEL_1, sum(S) as T from Q2 group by CHANNEL_1) select Q2.Q, Q2.CHANNEL_1, Q2.S, Q3.T, Q2.S / Q3.T as SH from Q2 left join Q3 on Q2.CHANNEL_1 = Q3.CHANNEL_1 order by Q2.Q, Q2.CHANNEL_1

--- thoughtspot
SELECT "ta_1"."city" "ca_1", CASE WHEN sum("ta_2"."total") IS NOT NULL THEN sum("ta_2"."total") ELSE 0 END "ca_2" FROM "public"."invoices" "ta_2" LEFT OUTER JOIN "public"."customers" "ta_1" ON "ta_2"."customer_id" = "ta_1"."id" GROUP BY "ca_1"

--- thoughtspot growth
WITH "qt_0" AS (SELECT sum("ta_1"."total") "ca_1", date_trunc('YEAR', "ta_1"."day") "ca_2" FROM "public"."invoices" "ta_1" GROUP BY "ca_2"), "qt_1" AS (SELECT "ca_1", "ca_2", lag("ca_1", 1) OVER (ORDER BY "ca_2" ASC) "ca_3" FROM "qt_0") SELECT "ca_2", "ca_1", ("ca_1" - "ca_3") / nullif("ca_3", 0) * 100.0 "growth" FROM "qt_1" ORDER BY "ca_2" ASC

--- looker explore
SELECT
    invoices.channel  AS "invoices.channel",
        (DATE(invoices.day )) AS "invoices.day_date",
    COUNT(*) AS "invoices.count",
    COALESCE(SUM(invoices.total ), 0) AS "invoices.total_amount"
FROM public.invoices  AS invoices
WHERE ((( invoices.day  ) >= ((DATE '2024-03-01')) AND ( invoices.day  ) < ((DATE '2024-03-08'))))
GROUP BY
    1,
    2
HAVING COUNT(*) > 0
ORDER BY
    2 DESC, 1
FETCH NEXT 500 ROWS ONLY
--- plain
SELECT channel, day, COUNT(*), SUM(total) FROM invoices WHERE day >= '2024-03-01' AND day < '2024-03-08' GROUP BY 1, 2 ORDER BY 2 DESC, 1

--- looker pivot rank
SELECT * FROM (
SELECT *, DENSE_RANK() OVER (ORDER BY z___min_rank) as z___pivot_row_rank, RANK() OVER (PARTITION BY z__pivot_col_rank ORDER BY z___min_rank) as z__pivot_col_ordering, CASE WHEN z___min_rank = z___rank THEN 1 ELSE 0 END AS z__is_highest_ranked_cell FROM (
SELECT *, MIN(z___rank) OVER (PARTITION BY "invoices.channel") as z___min_rank FROM (
SELECT *, RANK() OVER (ORDER BY CASE WHEN z__pivot_col_rank=1 THEN (CASE WHEN "invoices.count" IS NOT NULL THEN 0 ELSE 1 END) ELSE 2 END, CASE WHEN z__pivot_col_rank=1 THEN "invoices.count" ELSE NULL END DESC, "invoices.count" DESC, z__pivot_col_rank, "invoices.channel") AS z___rank FROM (
SELECT *, DENSE_RANK() OVER (ORDER BY CASE WHEN "invoices.status" IS NULL THEN 1 ELSE 0 END, "invoices.status") AS z__pivot_col_rank FROM (
SELECT
    invoices.status  AS "invoices.status",
    invoices.channel  AS "invoices.channel",
    COUNT(*) AS "invoices.count"
FROM public.invoices  AS invoices
GROUP BY
    1,
    2) ww
) bb WHERE z__pivot_col_rank <= 16384
) aa
) xx
) zz
 WHERE (z__pivot_col_rank <= 50 OR z__is_highest_ranked_cell = 1) AND (z___pivot_row_rank <= 500 OR z__pivot_col_ordering = 1) ORDER BY z___pivot_row_rank, "invoices.status"

--- looker month text
SELECT (TO_CHAR(DATE_TRUNC('month', invoices.moment ), 'YYYY-MM')) AS "invoices.month", COUNT(*) AS "n" FROM public.invoices AS invoices GROUP BY (DATE_TRUNC('month', invoices.moment )) HAVING COUNT(*) > 0 ORDER BY 1 DESC FETCH NEXT 500 ROWS ONLY
--- plain
SELECT strftime(date_trunc('month', moment), '%Y-%m') AS m, COUNT(*) FROM invoices GROUP BY 1 ORDER BY 1 DESC

--- looker tier
SELECT CASE WHEN customers.points < 0 THEN 'Below 0' WHEN customers.points >= 0 AND customers.points < 200 THEN '0 to 199' WHEN customers.points >= 200 AND customers.points < 500 THEN '200 to 499' WHEN customers.points >= 500 THEN '500 or Above' ELSE 'Undefined' END AS "tier", CASE WHEN customers.points < 0 THEN '0' WHEN customers.points >= 0 AND customers.points < 200 THEN '1' WHEN customers.points >= 200 AND customers.points < 500 THEN '2' WHEN customers.points >= 500 THEN '3' ELSE 'z' END AS "tier__sort_", COUNT(*) AS n FROM public.customers AS customers GROUP BY 1, 2 HAVING COUNT(*) > 0 ORDER BY 2 FETCH NEXT 500 ROWS ONLY
--- plain
SELECT CASE WHEN points < 200 THEN '0 to 199' WHEN points < 500 THEN '200 to 499' ELSE '500 or Above' END, CASE WHEN points < 200 THEN '1' WHEN points < 500 THEN '2' ELSE '3' END s, COUNT(*) FROM customers GROUP BY 1, 2 ORDER BY s

--- grafana time group | data=rides
SELECT
  floor(extract(epoch from started)/3600)*3600 AS "time",
  count(*) AS rides
FROM rides
WHERE started BETWEEN '2024-01-10T00:00:00Z' AND '2024-01-10T12:00:00Z'
GROUP BY time
HAVING count(*) > 0
ORDER BY time
--- plain
SELECT floor(extract(epoch from started)/3600)*3600 AS t, count(*) FROM rides WHERE started BETWEEN TIMESTAMP '2024-01-10 00:00:00' AND TIMESTAMP '2024-01-10 12:00:00' GROUP BY 1 ORDER BY 1

--- grafana group alias | data=rides
SELECT (extract(epoch from started)/86400)::bigint*86400 AS "time", origin AS metric, avg(minutes) AS value FROM rides WHERE extract(epoch from started) >= 1704067200 AND extract(epoch from started) <= 1704585600 GROUP BY 1, 2 ORDER BY 1, 2

--- grafana date bin | data=rides
SELECT date_bin('6 hours', started, TIMESTAMP '2024-01-01') AS time, count(*) FROM rides WHERE started >= '2024-01-02' AND started < '2024-01-04' GROUP BY 1 ORDER BY 1
--- plain
SELECT time_bucket(INTERVAL '6 hours', started, TIMESTAMP '2024-01-01') AS t, count(*) FROM rides WHERE started >= '2024-01-02' AND started < '2024-01-04' GROUP BY 1 ORDER BY 1

--- grafana mysql | data=rides, dialect=mysql
SELECT UNIX_TIMESTAMP(started) DIV 21600 * 21600 AS "time", COUNT(*) AS value FROM rides WHERE started BETWEEN FROM_UNIXTIME(1704067200) AND FROM_UNIXTIME(1704240000) GROUP BY 1 HAVING COUNT(*) > 0 ORDER BY UNIX_TIMESTAMP(started) DIV 21600 * 21600
--- plain
SELECT floor(epoch(started) / 21600) * 21600 AS t, COUNT(*) FROM rides WHERE started >= '2024-01-01' AND started <= TIMESTAMP '2024-01-03' GROUP BY 1 ORDER BY 1

--- dbt metric
with spine as (
  select generate_series(date '2024-01-01', date '2024-12-01', interval '1 month')::date as month
), facts as (
  select date_trunc('month', day)::date as month, count(distinct customer_id) as active from invoices where day >= '2024-01-01' group by 1
)
select spine.month, coalesce(facts.active, 0) as active
from spine left join facts using (month)
order by 1
--- plain
SELECT date_trunc('month', day), COUNT(DISTINCT customer_id) FROM invoices WHERE day >= '2024-01-01' GROUP BY 1 ORDER BY 1

--- metricflow
SELECT
  subq_2.metric_time__month
  , subq_2.revenue AS revenue
FROM (
  SELECT
    subq_1.metric_time__month
    , SUM(subq_1.revenue) AS revenue
  FROM (
    SELECT
      DATE_TRUNC('month', invoices_src.day) AS metric_time__month
      , total AS revenue
    FROM public.invoices invoices_src
  ) subq_1
  GROUP BY
    subq_1.metric_time__month
) subq_2
ORDER BY 1

--- metricflow ratio
SELECT COALESCE(a.m, b.m) AS m, MAX(a.num) AS num, MAX(b.den) AS den, CAST(MAX(a.num) AS DOUBLE PRECISION) / CAST(NULLIF(MAX(b.den), 0) AS DOUBLE PRECISION) AS ratio FROM (SELECT DATE_TRUNC('quarter', day) AS m, SUM(CASE WHEN status = 'returned' THEN 1 ELSE 0 END) AS num FROM invoices GROUP BY DATE_TRUNC('quarter', day)) a FULL OUTER JOIN (SELECT DATE_TRUNC('quarter', day) AS m, SUM(1) AS den FROM invoices GROUP BY DATE_TRUNC('quarter', day)) b ON a.m = b.m GROUP BY COALESCE(a.m, b.m) ORDER BY 1

--- hex chart
SELECT DATE_TRUNC('month', CAST("day" AS TIMESTAMP)) AS "day_trunc", "channel", SUM("total") AS "total_sum" FROM (SELECT * FROM "invoices") AS "dataframe" GROUP BY 1, 2 ORDER BY 1, 2 LIMIT 10001
--- plain
SELECT DATE_TRUNC('month', day), channel, SUM(total) FROM invoices GROUP BY 1, 2 ORDER BY 1, 2

--- dbt utils pivot
select channel, sum(case when status = 'paid' then 1 else 0 end) as "paid", sum(case when status = 'open' then 1 else 0 end) as "open", sum(case when status = 'returned' then 1 else 0 end) as "returned" from invoices group by channel order by channel

--- dbt tests
select count(*) as failures, count(*) != 0 as should_warn, count(*) != 0 as should_error from (select day from invoices where day is null) dbt_internal_test

--- count by month
SELECT DATE_TRUNC('month', "public"."invoices"."moment") AS "moment", COUNT(*) AS "count" FROM "public"."invoices" GROUP BY DATE_TRUNC('month', "public"."invoices"."moment") HAVING COUNT(*) > 0 ORDER BY DATE_TRUNC('month', "public"."invoices"."moment") ASC

--- hour of day
SELECT CAST(extract(hour from "public"."invoices"."moment") AS integer) AS "moment", COUNT(*) AS "count" FROM "public"."invoices" GROUP BY CAST(extract(hour from "public"."invoices"."moment") AS integer) HAVING COUNT(*) > 0 ORDER BY CAST(extract(hour from "public"."invoices"."moment") AS integer) ASC

--- not empty filter
SELECT COUNT(*) AS "count" FROM "public"."customers" WHERE ("public"."customers"."email" IS NOT NULL AND ("public"."customers"."email" <> '' OR "public"."customers"."email" IS NULL))

--- offset previous period
SELECT "source"."day" AS "day", "source"."sum" AS "sum", LAG("source"."sum", 1) OVER (ORDER BY "source"."day" ASC) AS "previous" FROM (SELECT CAST(DATE_TRUNC('month', "public"."invoices"."day") AS date) AS "day", SUM("public"."invoices"."total") AS "sum" FROM "public"."invoices" GROUP BY CAST(DATE_TRUNC('month', "public"."invoices"."day") AS date)) AS "source" ORDER BY "source"."day" ASC

--- percentile | near=5
SELECT PERCENTILE_CONT(0.9) within group (order by "public"."invoices"."total") AS "percentile" FROM "public"."invoices" LIMIT 1
--- plain
SELECT quantile_cont(total, 0.9) FROM invoices

--- model source with star
WITH "model" AS (SELECT * FROM "public"."invoices" WHERE "status" <> 'returned') SELECT "model"."channel", COUNT(*) AS "count" FROM "model" GROUP BY "model"."channel" ORDER BY "count" DESC

--- joined two step
SELECT "Invoices"."status" AS "Invoices__status", "Products"."active" AS "Products__active", SUM("public"."invoice_lines"."price" * "public"."invoice_lines"."quantity") AS "sum" FROM "public"."invoice_lines" LEFT JOIN "public"."invoices" AS "Invoices" ON "public"."invoice_lines"."invoice_id" = "Invoices"."id" LEFT JOIN "public"."products" AS "Products" ON "public"."invoice_lines"."product_id" = "Products"."id" GROUP BY "Invoices"."status", "Products"."active" HAVING COUNT(*) > 0 ORDER BY "Invoices"."status" ASC, "Products"."active" ASC
