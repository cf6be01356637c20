-- Questions in the shape in which Looker writes them: a view's name before each column, the measures with its dots and
-- underscores, COALESCE around sums, months as texts, FETCH NEXT 500 ROWS ONLY, and derived tables as WITH.
-- | data=shop

--- invoices by channel
SELECT
    invoices.channel  AS "invoices.channel",
    COUNT(*) AS "invoices.count"
FROM public.invoices  AS invoices
GROUP BY
    1
ORDER BY
    2 DESC
FETCH NEXT 500 ROWS ONLY
--- plain
SELECT channel, COUNT(*) FROM invoices GROUP BY 1 ORDER BY 2 DESC

--- a sum that is never nothing
SELECT
    COALESCE(SUM(invoices.total ), 0) AS "invoices.total_sales"
FROM public.invoices  AS invoices
LIMIT 500

--- months as texts | dialect=postgres
SELECT
    (TO_CHAR(DATE_TRUNC('month', invoices.moment ), 'YYYY-MM')) AS "invoices.created_month",
    COUNT(*) AS "invoices.count"
FROM public.invoices  AS invoices
WHERE ((( invoices.moment  ) >= ((TIMESTAMP '2023-01-01')) AND ( invoices.moment  ) < ((TIMESTAMP '2024-01-01'))))
GROUP BY
    (DATE_TRUNC('month', invoices.moment ))
ORDER BY
    1 DESC
FETCH NEXT 500 ROWS ONLY
--- plain
SELECT strftime(moment, '%Y-%m') AS m, COUNT(*) FROM invoices WHERE year(moment) = 2023 GROUP BY m ORDER BY m DESC

--- months as texts elsewhere | dialect=bigquery
SELECT
    (FORMAT_TIMESTAMP('%Y-%m', TIMESTAMP_TRUNC(invoices.moment , MONTH))) AS invoices_created_month,
    AVG(invoices.total ) AS invoices_average_total
FROM `public.invoices`  AS invoices
GROUP BY
    1
ORDER BY
    1
LIMIT 500
--- plain
SELECT strftime(moment, '%Y-%m') AS m, AVG(total) FROM invoices GROUP BY m ORDER BY m

--- customers of two views
SELECT
    customers.segment  AS "customers.segment",
    COUNT(DISTINCT customers.id ) AS "customers.count",
    COALESCE(SUM(invoices.total ), 0) AS "invoices.total_sales"
FROM public.invoices  AS invoices
LEFT JOIN public.customers  AS customers ON invoices.customer_id = customers.id
GROUP BY
    1
ORDER BY
    1
FETCH NEXT 500 ROWS ONLY
--- plain
SELECT segment, COUNT(DISTINCT customers.id), SUM(total) FROM invoices JOIN customers ON customer_id = customers.id
GROUP BY 1 ORDER BY 1

--- a filter of yes and no
SELECT
    CASE WHEN customers.newsletter  THEN 'Yes' ELSE 'No' END
 AS "customers.newsletter",
    COUNT(*) AS "customers.count"
FROM public.customers  AS customers
GROUP BY 1
ORDER BY 2 DESC
LIMIT 500

--- tiers
SELECT
    CASE
    WHEN customers.points  < 100 THEN 'Below 100'
    WHEN customers.points  >= 100 AND customers.points  < 500 THEN '100 to 499'
    WHEN customers.points  >= 500 THEN '500 or Above'
    ELSE 'Undefined'
    END AS "customers.points_tier",
    AVG(customers.points ) AS "customers.average_points"
FROM public.customers  AS customers
GROUP BY 1
ORDER BY 2
LIMIT 500
--- a derived table
WITH by_customer AS (SELECT customer_id, SUM(total) AS spent, COUNT(*) AS n FROM public.invoices GROUP BY customer_id)
SELECT
    AVG(by_customer.spent) AS "by_customer.average_spent",
    AVG(by_customer.n) AS "by_customer.average_orders"
FROM by_customer
LIMIT 500

--- a derived table of groups
WITH by_channel AS (SELECT channel, SUM(total) AS sales FROM public.invoices GROUP BY 1)
SELECT by_channel.channel AS "by_channel.channel", by_channel.sales AS "by_channel.sales",
    RANK() OVER (ORDER BY by_channel.sales DESC) AS "by_channel.rank"
FROM by_channel
ORDER BY 3
FETCH NEXT 500 ROWS ONLY
--- plain
SELECT channel, SUM(total) AS s, RANK() OVER (ORDER BY SUM(total) DESC) AS r FROM invoices GROUP BY 1 ORDER BY 3

--- filtered measures
SELECT
    invoices.channel  AS "invoices.channel",
    COUNT(CASE WHEN invoices.status = 'paid' THEN 1 ELSE NULL END) AS "invoices.paid",
    COUNT(CASE WHEN invoices.status = 'open' THEN 1 ELSE NULL END) AS "invoices.open",
    1.0 * COUNT(CASE WHEN invoices.status = 'paid' THEN 1 END) / NULLIF(COUNT(*), 0) AS "invoices.paid_share"
FROM public.invoices  AS invoices
GROUP BY 1
HAVING COUNT(*) > 10
ORDER BY 1
LIMIT 500

--- suggestions of a filter
SELECT products.name  AS "products.name"
FROM public.products  AS products
WHERE UPPER(products.name ) LIKE UPPER('%1%')
GROUP BY 1
ORDER BY 1
FETCH NEXT 5 ROWS ONLY
--- plain
SELECT name FROM products WHERE name LIKE '%1%' GROUP BY 1 ORDER BY 1 LIMIT 5

--- days since
SELECT
    AVG(DATE_DIFF('day', customers.joined , invoices.day )) AS "invoices.average_days_after_joining"
FROM public.invoices  AS invoices
INNER JOIN public.customers  AS customers ON invoices.customer_id = customers.id
LIMIT 500

--- quarters | dialect=snowflake
SELECT
    DATE_TRUNC('QUARTER', invoices.day) AS "invoices.quarter",
    COALESCE(SUM(invoices.total), 0) AS "invoices.total_sales"
FROM public.invoices AS invoices
GROUP BY 1
ORDER BY 1
LIMIT 500
