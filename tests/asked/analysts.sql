-- Questions as analysts write them over what was measured: chains of named queries, windows, shares, ranks, joins of two
-- answers, sets, and public tables alone.
-- | data=shop

--- a share of the total
WITH by_channel AS (SELECT channel, SUM(total) AS turnover FROM invoices GROUP BY channel)
SELECT channel, turnover, turnover / SUM(turnover) OVER () AS share FROM by_channel ORDER BY channel

--- a share in the same select
SELECT channel, COUNT(*) AS n, 100.0 * COUNT(*) / SUM(COUNT(*)) OVER () AS percent FROM invoices GROUP BY channel ORDER BY channel

--- a running total
WITH monthly AS (SELECT DATE_TRUNC('month', day) AS month, SUM(total) AS turnover FROM invoices GROUP BY 1)
SELECT month, SUM(turnover) OVER (ORDER BY month) AS so_far FROM monthly ORDER BY month

--- a running total in one
SELECT EXTRACT(MONTH FROM day) AS month, SUM(SUM(total)) OVER (ORDER BY EXTRACT(MONTH FROM day)) AS so_far
FROM invoices GROUP BY EXTRACT(MONTH FROM day) ORDER BY month

--- ranks
SELECT city, n, RANK() OVER (ORDER BY n DESC, city) AS place FROM (SELECT city, COUNT(*) AS n FROM customers GROUP BY city) t
ORDER BY place

--- ranks in one
SELECT segment, SUM(points) AS points, ROW_NUMBER() OVER (ORDER BY SUM(points) DESC) AS place
FROM customers GROUP BY segment ORDER BY place

--- the best of each
SELECT channel, status, n FROM (
  SELECT channel, status, COUNT(*) AS n, ROW_NUMBER() OVER (PARTITION BY channel ORDER BY COUNT(*) DESC) AS place
  FROM invoices GROUP BY channel, status
) t WHERE place = 1 ORDER BY channel

--- the best of each by qualify
SELECT channel, status, SUM(total) AS turnover FROM invoices GROUP BY channel, status
QUALIFY ROW_NUMBER() OVER (PARTITION BY channel ORDER BY SUM(total) DESC) = 1 ORDER BY channel

--- growth from month to month
WITH monthly AS (SELECT DATE_TRUNC('month', day) AS month, SUM(total) AS turnover FROM invoices GROUP BY month)
SELECT month, turnover, LAG(turnover) OVER (ORDER BY month) AS before,
  (turnover - LAG(turnover) OVER (ORDER BY month)) / LAG(turnover) OVER (ORDER BY month) AS growth
FROM monthly ORDER BY month

--- the same month of the year before
WITH m AS (SELECT YEAR(day) AS y, MONTH(day) AS m, SUM(total) AS t FROM invoices GROUP BY 1, 2)
SELECT a.m, a.t AS now, b.t AS before, a.t / b.t - 1 AS growth FROM m a JOIN m b ON a.m = b.m AND a.y = b.y + 1 ORDER BY a.m

--- a moving mean
SELECT month, AVG(n) OVER (ORDER BY month ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS smooth
FROM (SELECT MONTH(day) AS month, COUNT(*) AS n FROM invoices GROUP BY 1) t ORDER BY month

--- joins of two answers
SELECT a.segment, a.n AS customers, b.n AS invoices, b.n * 1.0 / a.n AS each
FROM (SELECT segment, COUNT(*) AS n FROM customers GROUP BY segment) a
JOIN (SELECT c.segment, COUNT(*) AS n FROM customers c JOIN invoices i ON i.customer_id = c.id GROUP BY c.segment) b
  ON a.segment = b.segment
ORDER BY a.segment

--- named answers joined
WITH n AS (SELECT city, COUNT(*) AS n FROM customers GROUP BY city),
     p AS (SELECT city, AVG(points) AS points FROM customers GROUP BY city)
SELECT n.city, n.n, p.points FROM n JOIN p USING (city) ORDER BY n.city

--- an answer beside a public table
WITH n AS (SELECT city, COUNT(*) AS customers FROM customers GROUP BY city)
SELECT s.region, SUM(n.customers) AS customers, SUM(s.thousands) AS thousands
FROM n JOIN cities s ON s.name = n.city GROUP BY s.region ORDER BY s.region

--- an answer beside its mean
SELECT channel, t, t - (SELECT AVG(t) FROM (SELECT channel, SUM(total) AS t FROM invoices GROUP BY channel) x) AS apart
FROM (SELECT channel, SUM(total) AS t FROM invoices GROUP BY channel) y ORDER BY channel

--- the mean of groups
SELECT AVG(n) AS mean, MIN(n) AS least, MAX(n) AS most FROM (SELECT city, COUNT(*) AS n FROM customers GROUP BY city) t

--- how many groups
SELECT COUNT(*) AS cities FROM (SELECT city, COUNT(*) AS n FROM customers GROUP BY city HAVING COUNT(*) > 45) t

--- answers below each other
SELECT 'customers' AS what, COUNT(*) AS n FROM customers
UNION ALL SELECT 'invoices', COUNT(*) FROM invoices
UNION ALL SELECT 'lines', COUNT(*) FROM invoice_lines
ORDER BY what

--- groups and their total
SELECT segment, COUNT(*) AS n FROM customers GROUP BY segment
UNION ALL
SELECT 'all', COUNT(*) FROM customers

--- two answers without doubles
SELECT channel FROM invoices GROUP BY channel HAVING COUNT(*) > 100
UNION
SELECT channel FROM invoices GROUP BY channel HAVING SUM(total) > 1000

--- what both have
SELECT city FROM customers WHERE newsletter GROUP BY city HAVING COUNT(*) > 5
INTERSECT
SELECT city FROM customers WHERE NOT newsletter GROUP BY city HAVING COUNT(*) > 5

--- what one has not
SELECT name FROM cities EXCEPT SELECT city FROM customers GROUP BY city HAVING COUNT(*) > 50

--- a pivot of an answer
SELECT MAX(CASE WHEN channel = 'web' THEN n END) AS web, MAX(CASE WHEN channel = 'store' THEN n END) AS store
FROM (SELECT channel, COUNT(*) AS n FROM invoices GROUP BY channel) t

--- a funnel
SELECT
  (SELECT COUNT(*) FROM customers) AS known,
  (SELECT COUNT(DISTINCT customer_id) FROM invoices) AS bought,
  (SELECT COUNT(DISTINCT customer_id) FROM invoices WHERE status = 'paid') AS paid

--- a chain
WITH lines AS (SELECT i.channel, l.quantity * l.price AS worth FROM invoices i JOIN invoice_lines l ON l.invoice_id = i.id),
     sums AS (SELECT channel, SUM(worth) AS worth, COUNT(*) AS n FROM lines GROUP BY channel),
     shares AS (SELECT channel, worth, worth / (SELECT SUM(worth) FROM sums) AS share FROM sums)
SELECT channel, ROUND(100 * share, 1) AS percent FROM shares ORDER BY percent DESC

--- cohorts
WITH first AS (SELECT customer_id, MIN(day) AS day FROM invoices GROUP BY customer_id)
SELECT DATE_TRUNC('quarter', day) AS cohort, COUNT(*) AS customers FROM first
WHERE day < DATE '2024-01-01' GROUP BY cohort ORDER BY cohort

--- cohorts and their invoices
WITH first AS (SELECT customer_id, MIN(YEAR(day)) AS year FROM invoices GROUP BY customer_id)
SELECT f.year AS cohort, YEAR(i.day) AS year, COUNT(DISTINCT i.customer_id) AS customers
FROM first f JOIN invoices i ON i.customer_id = f.customer_id
GROUP BY f.year, YEAR(i.day) HAVING COUNT(*) > 0 ORDER BY 1, 2

--- customers who came back
SELECT COUNT(*) FILTER (WHERE years > 1) AS came_back, COUNT(*) AS all_of_them
FROM (SELECT customer_id, COUNT(DISTINCT YEAR(day)) AS years FROM invoices GROUP BY customer_id) t

--- above the mean of all
SELECT segment, COUNT(*) AS n FROM customers WHERE points > (SELECT AVG(points) FROM customers)
GROUP BY segment ORDER BY segment

--- below a public mean
SELECT COUNT(*) AS cheap FROM invoice_lines WHERE price < (SELECT AVG(price) FROM products)

--- deviations
WITH stats AS (SELECT AVG(total) AS m, STDDEV_SAMP(total) AS s FROM invoices)
SELECT m - 2 * s AS low, m + 2 * s AS high, s / m AS relative FROM stats

--- quarters of what was measured
SELECT city, NTILE(4) OVER (ORDER BY n, city) AS quarter FROM (SELECT city, COUNT(*) AS n FROM customers GROUP BY city) t
ORDER BY city

--- first and last
SELECT DISTINCT FIRST_VALUE(channel) OVER (ORDER BY n DESC) AS most, FIRST_VALUE(channel) OVER (ORDER BY n) AS least
FROM (SELECT channel, COUNT(*) AS n FROM invoices GROUP BY channel) t

--- words about numbers
SELECT segment || ': ' || CAST(COUNT(*) AS VARCHAR) AS words FROM customers GROUP BY segment ORDER BY words

--- labels of groups
SELECT CASE status WHEN 'paid' THEN 'done' ELSE 'not done' END AS state, SUM(n) AS n
FROM (SELECT status, COUNT(*) AS n FROM invoices GROUP BY status) t GROUP BY 1 ORDER BY 1

--- the key as another type
SELECT CAST(product_id AS VARCHAR) AS product, COUNT(*) AS n FROM invoice_lines GROUP BY product_id ORDER BY n DESC, product LIMIT 5

--- a key that is computed later
SELECT product_id, product_id % 2 = 0 AS even, SUM(quantity) AS n FROM invoice_lines GROUP BY product_id ORDER BY product_id

--- a date that is written out
SELECT STRFTIME(month, '%B %Y') AS month, n FROM (
  SELECT DATE_TRUNC('month', day) AS month, COUNT(*) AS n FROM invoices WHERE YEAR(day) = 2024 GROUP BY 1
) t ORDER BY n DESC, month

--- different keys
SELECT DISTINCT channel FROM invoices ORDER BY channel

--- different pairs of keys
SELECT DISTINCT channel, status FROM invoices ORDER BY channel, status

--- groups without a number
SELECT segment FROM customers GROUP BY segment ORDER BY segment

--- ordered by what is not shown
SELECT segment FROM customers GROUP BY segment ORDER BY AVG(points) DESC

--- filtered by what is not shown
SELECT city FROM customers GROUP BY city HAVING AVG(points) > 500 ORDER BY city

--- skipped
SELECT city, COUNT(*) AS n FROM customers GROUP BY city ORDER BY city LIMIT 3 OFFSET 2

--- a constant beside
SELECT 'shop' AS source, 2024 AS year, COUNT(*) AS n FROM invoices

--- percent of a limit
SELECT LEAST(100, 100.0 * SUM(total) / 600000) AS percent FROM invoices

--- a text of truth
SELECT CASE WHEN COUNT(*) > 1000 THEN 'many' ELSE 'few' END AS words FROM invoices

--- a list of months
SELECT month, COALESCE(n, 0) AS n
FROM (SELECT UNNEST([1, 2, 3, 13]) AS month) m
LEFT JOIN (SELECT MONTH(day) AS month, COUNT(*) AS n FROM invoices GROUP BY 1) t USING (month) ORDER BY month

--- a list of values
SELECT v.name, t.n FROM (VALUES ('web', 1), ('store', 2)) AS v(name, place)
JOIN (SELECT channel, COUNT(*) AS n FROM invoices GROUP BY channel) t ON t.channel = v.name ORDER BY v.place

--- public tables alone
SELECT c.name, COUNT(*) AS n, MIN(p.price) AS cheapest FROM products p JOIN categories c ON c.id = p.category_id
WHERE p.active GROUP BY c.name ORDER BY c.name

--- rows of a public table
SELECT * FROM cities WHERE region IN ('north', 'south') ORDER BY thousands DESC

--- a window over a public table
SELECT name, region, RANK() OVER (PARTITION BY region ORDER BY thousands DESC) AS place FROM cities ORDER BY region, place

--- nothing but numbers
SELECT 1 + 1 AS two, 'x' AS letter

--- a public median
SELECT region, MEDIAN(thousands) AS half, STRING_AGG(name, ', ' ORDER BY name) AS names FROM cities GROUP BY region ORDER BY region

--- products of a region nobody knows
SELECT name FROM products WHERE id IN (SELECT product_id FROM (VALUES (1), (5)) AS t(product_id)) ORDER BY name

--- lines per customer and city
WITH pieces AS (
  SELECT i.customer_id, SUM(l.quantity) AS n FROM invoices i JOIN invoice_lines l ON l.invoice_id = i.id GROUP BY i.customer_id
)
SELECT c.segment, AVG(p.n) AS pieces FROM customers c JOIN pieces p ON p.customer_id = c.id GROUP BY c.segment ORDER BY c.segment

--- both kinds below each other
SELECT SUM(x) AS s, COUNT(*) AS n FROM (
  SELECT customer_id, total AS x FROM invoices WHERE channel = 'web'
  UNION ALL
  SELECT customer_id, total AS x FROM invoices WHERE channel = 'phone'
) t

--- a histogram of persons
SELECT bin, COUNT(*) AS customers FROM (
  SELECT customer_id, FLOOR(SUM(total) / 500) AS bin FROM invoices GROUP BY customer_id
) t GROUP BY bin HAVING COUNT(*) > 3 ORDER BY bin
--- a nested mean
SELECT segment, AVG(spent) AS mean FROM (
  SELECT c.id, c.segment, SUM(i.total) AS spent FROM customers c JOIN invoices i ON i.customer_id = c.id GROUP BY c.id, c.segment
) t GROUP BY segment ORDER BY segment

--- a concentration
WITH t AS (SELECT city, SUM(points) AS p FROM customers GROUP BY city),
     s AS (SELECT p / SUM(p) OVER () AS share FROM t)
SELECT SUM(share * share) AS herfindahl FROM s

--- a wrapper around it all
SELECT * FROM (SELECT channel, COUNT(*) AS n FROM invoices GROUP BY channel) AS t WHERE n > 10 ORDER BY n DESC LIMIT 2

--- a price for each
WITH a AS (SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 3e19) channel, COUNT(*) AS n FROM invoices GROUP BY channel),
     b AS (SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 6e19) channel, SUM(total) AS t FROM invoices GROUP BY channel)
SELECT a.channel, b.t / a.n AS mean FROM a JOIN b ON a.channel = b.channel ORDER BY a.channel
--- plain
SELECT channel, SUM(total) / COUNT(*) AS mean FROM invoices GROUP BY channel ORDER BY channel

--- levels of groups
SELECT segment, newsletter, COUNT(*) AS n FROM customers GROUP BY ROLLUP (segment, newsletter)

--- totals under their groups
SELECT channel, status, SUM(total) AS turnover FROM invoices GROUP BY channel, status WITH ROLLUP
--- plain
SELECT channel, status, SUM(total) AS turnover FROM invoices GROUP BY ROLLUP (channel, status)

--- every level
SELECT channel, status, GROUPING(channel, status) AS level, COUNT(*) AS n FROM invoices GROUP BY CUBE (channel, status)
ORDER BY level, channel, status

--- two ways to group
SELECT segment, YEAR(joined) AS year, AVG(points) AS mean FROM customers GROUP BY GROUPING SETS ((segment), (YEAR(joined)))

--- words for all
SELECT CASE WHEN GROUPING(segment) = 1 THEN 'all' ELSE segment END AS segment, COUNT(*) AS n
FROM customers GROUP BY ROLLUP (segment) ORDER BY GROUPING(segment), segment

--- shares within a level
SELECT channel, status, COUNT(*) AS n, 100.0 * COUNT(*) / SUM(COUNT(*)) OVER (PARTITION BY GROUPING(channel), GROUPING(status)) AS percent
FROM invoices GROUP BY GROUPING SETS ((channel), (status))

--- levels of an answer
SELECT segment, SUM(n) AS n FROM (SELECT segment, newsletter, COUNT(*) AS n FROM customers GROUP BY segment, newsletter) t
GROUP BY ROLLUP (segment)

--- levels of a public table
SELECT region, GROUPING(region) AS whole, SUM(thousands) AS thousands FROM cities GROUP BY ROLLUP (region)

--- a histogram in a word
SELECT HISTOGRAM(points) FROM customers
--- plain
SELECT points // 100 * 100 AS bin, COUNT(*) FROM customers GROUP BY bin

--- a histogram with more bins
SELECT HISTOGRAM(total, 20) AS invoices FROM invoices WHERE channel = 'web'
--- plain
SELECT FLOOR(total / 25) * 25 AS bin, COUNT(*) FROM invoices WHERE channel = 'web' GROUP BY bin

--- a histogram of words
SELECT HISTOGRAM(segment) FROM customers
--- plain
SELECT segment, COUNT(*) FROM customers GROUP BY segment

--- a histogram for each
SELECT channel, HISTOGRAM(total, 5) AS n FROM invoices GROUP BY channel ORDER BY channel, bin
--- plain
SELECT channel, FLOOR(total / 100) * 100 AS bin, COUNT(*) FROM invoices GROUP BY channel, bin ORDER BY channel, bin

--- shares of a histogram
SELECT bin, 100.0 * n / SUM(n) OVER () AS percent FROM (SELECT HISTOGRAM(quantity) AS n FROM invoice_lines) t ORDER BY bin
--- plain
SELECT quantity, 100.0 * COUNT(*) / SUM(COUNT(*)) OVER () AS percent FROM invoice_lines GROUP BY quantity ORDER BY quantity

--- above two means
SELECT COUNT(*) AS n FROM customers WHERE points > (SELECT AVG(points) FROM customers)
  AND segment = (SELECT segment FROM customers GROUP BY segment ORDER BY COUNT(*) DESC LIMIT 1)

--- those of the best city
SELECT segment, COUNT(*) AS n FROM customers WHERE city = (
  SELECT city FROM (SELECT city, RANK() OVER (ORDER BY COUNT(*) DESC) AS place FROM customers GROUP BY city) t WHERE place = 1
) GROUP BY segment

--- above what there is not
SELECT COUNT(*) AS n FROM customers WHERE points > (SELECT MAX(n) FROM (
  SELECT city, COUNT(*) AS n FROM customers GROUP BY city) t WHERE n > 1000)

--- in no city of many
SELECT COUNT(*) AS n FROM customers WHERE city NOT IN (SELECT city FROM customers GROUP BY city HAVING COUNT(*) > 1000)

--- called as a public table
WITH cities AS (SELECT name, region FROM cities WHERE thousands > 200)
SELECT cities.region, COUNT(*) AS n FROM cities GROUP BY cities.region

--- called as the table it sums up
WITH customers AS (SELECT city, COUNT(*) AS n FROM customers GROUP BY city) SELECT city, n FROM customers WHERE n > 50

--- a name within a name
WITH t AS (SELECT segment, COUNT(*) AS n FROM customers GROUP BY segment)
SELECT s.total, t.segment FROM (WITH t AS (SELECT SUM(n) AS total FROM t) SELECT total FROM t) s CROSS JOIN t

--- halves without an aggregate
SELECT DISTINCT quantity * 0.5 AS half FROM invoice_lines ORDER BY half

--- keys with fractions, computed with
SELECT d + 1 AS e, n FROM (SELECT quantity * 0.5 AS d, COUNT(*) AS n FROM invoice_lines GROUP BY 1) t ORDER BY e

--- aggregates as decimals
SELECT channel, AVG(total)::DECIMAL(9, 2) AS a, CAST(SUM(total) AS DECIMAL(12, 1)) AS s FROM invoices
GROUP BY channel ORDER BY channel

--- a mean beside each row's
WITH m AS (SELECT AVG(points) AS mean, STDDEV(points) AS deviation FROM customers)
SELECT segment, COUNT(*) AS n FROM customers CROSS JOIN m WHERE points > mean + m.deviation GROUP BY segment ORDER BY segment

--- each of all by a join
SELECT segment, COUNT(*) * 1.0 / t.n AS share FROM customers CROSS JOIN (SELECT COUNT(*) AS n FROM customers) t
GROUP BY segment, t.n ORDER BY segment
