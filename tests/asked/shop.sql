-- Exercises over a shop's database: customers, their invoices, the lines of these, and public products, categories and cities.
-- | data=shop

--- how many customers
SELECT COUNT(*) FROM customers;

--- how many have an address
SELECT COUNT(email) AS with_email, COUNT(*) - COUNT(email) AS without FROM customers

--- customers of each city
SELECT city, COUNT(*) AS customers FROM customers GROUP BY city ORDER BY city

--- cities with many customers
SELECT city, COUNT(id) AS n FROM customers GROUP BY city HAVING COUNT(id) >= 50 ORDER BY city

--- cities by their number of customers
SELECT city, COUNT(*) FROM customers GROUP BY city ORDER BY COUNT(*) DESC, city LIMIT 3

--- segments in order
SELECT segment AS "Segment", COUNT(*) AS "Customers" FROM customers GROUP BY 1 ORDER BY 2 DESC

--- different cities
SELECT COUNT(DISTINCT city) FROM customers

--- names of the cities
SELECT DISTINCT city FROM customers ORDER BY city

--- subscribers
SELECT newsletter, COUNT(*) AS n, AVG(points) AS points FROM customers GROUP BY newsletter

--- subscribers as a number
SELECT SUM(CASE WHEN newsletter THEN 1 ELSE 0 END) AS subscribers FROM customers

--- subscribers as a share
SELECT 100.0 * COUNT(*) FILTER (WHERE newsletter) / COUNT(*) AS percent FROM customers

--- whoever has no birthday
SELECT COUNT(*) FROM customers WHERE birth IS NULL

--- born in the eighties
SELECT COUNT(*) AS n FROM customers WHERE birth BETWEEN '1980-01-01' AND '1989-12-31'

--- decades of birth
SELECT FLOOR(EXTRACT(YEAR FROM birth) / 10) * 10 AS decade, COUNT(*) AS n FROM customers
WHERE birth IS NOT NULL GROUP BY decade ORDER BY decade

--- ages when they joined
SELECT AVG(EXTRACT(YEAR FROM joined) - EXTRACT(YEAR FROM birth)) AS age FROM customers WHERE birth IS NOT NULL

--- the years of joining
SELECT EXTRACT(YEAR FROM joined) AS year, COUNT(*) AS n FROM customers GROUP BY 1 ORDER BY 1

--- the months of joining
SELECT EXTRACT(MONTH FROM joined) AS month, COUNT(*) AS n FROM customers GROUP BY EXTRACT(MONTH FROM joined) ORDER BY month

--- names that begin alike
SELECT COUNT(*) FROM customers WHERE name LIKE 'customer 1%'

--- the ends of an address
SELECT COUNT(*) FROM customers WHERE email LIKE '%@example.org' AND email NOT LIKE 'c1%'

--- lengths of names
SELECT LENGTH(name) AS letters, COUNT(*) FROM customers GROUP BY LENGTH(name) ORDER BY letters

--- cities in capitals
SELECT UPPER(city) AS city, COUNT(*) AS n FROM customers GROUP BY UPPER(city) ORDER BY 1

--- capitals of what is grouped
SELECT UPPER(city) AS big, LENGTH(city) AS letters, COUNT(*) AS n FROM customers GROUP BY city ORDER BY big

--- most and least points
SELECT MIN(points) AS least, MAX(points) AS most, AVG(points) AS mean FROM customers

--- the spread of points
SELECT STDDEV(points) AS spread, VARIANCE(points) AS variance FROM customers

--- the spread by other names
SELECT STDEV(points) AS a, VAR(points) AS b FROM customers
--- plain
SELECT STDDEV(points), VARIANCE(points) FROM customers

--- the median of points | near=3
SELECT segment, MEDIAN(points) AS points FROM customers GROUP BY segment ORDER BY segment

--- points in bands
SELECT CASE WHEN points < 300 THEN 'bronze' WHEN points < 700 THEN 'silver' ELSE 'gold' END AS band, COUNT(*) AS n
FROM customers GROUP BY band ORDER BY band

--- points in hundreds
SELECT FLOOR(points / 100) AS hundred, COUNT(*) AS n FROM customers GROUP BY hundred ORDER BY hundred
--- plain
SELECT points // 100 AS hundred, COUNT(*) AS n FROM customers GROUP BY hundred ORDER BY hundred

--- the older half
SELECT AVG(points) FROM customers WHERE birth < DATE '1972-01-01' OR birth IS NULL

--- not in some cities
SELECT COUNT(*) FROM customers WHERE city NOT IN ('Aachen', 'Genf') AND NOT newsletter

--- the north by a join
SELECT COUNT(*) FROM customers c JOIN cities s ON s.name = c.city WHERE s.region = 'north'

--- the north by a list
SELECT COUNT(*) FROM customers WHERE city IN (SELECT name FROM cities WHERE region = 'north')

--- the north by a question
SELECT COUNT(*) FROM customers c WHERE EXISTS (SELECT 1 FROM cities s WHERE s.name = c.city AND s.region = 'north')

--- regions
SELECT region, COUNT(*) AS n FROM customers JOIN cities ON cities.name = customers.city GROUP BY region ORDER BY region

--- every region
SELECT s.region, COUNT(c.id) AS n FROM cities s LEFT JOIN customers c ON c.city = s.name GROUP BY s.region ORDER BY s.region

--- customers per thousand
SELECT s.name, COUNT(*) / s.thousands AS density FROM customers c JOIN cities s ON s.name = c.city
GROUP BY s.name, s.thousands ORDER BY s.name

--- how many invoices
SELECT COUNT(*) AS invoices, COUNT(DISTINCT customer_id) AS customers FROM invoices

--- turnover
SELECT SUM(total) AS turnover, AVG(total) AS mean FROM invoices WHERE status = 'paid'

--- turnover in thousands
SELECT ROUND(SUM(total) / 1000, 1) AS thousands FROM invoices

--- turnover as a text
SELECT CAST(COUNT(*) AS VARCHAR) || ' invoices' AS words FROM invoices

--- turnover by channel
SELECT channel, SUM(total) AS turnover FROM invoices GROUP BY channel ORDER BY turnover DESC

--- the best channel
SELECT channel, SUM(total) AS turnover FROM invoices GROUP BY channel ORDER BY turnover DESC LIMIT 1

--- the best channel alone
SELECT channel FROM invoices GROUP BY channel ORDER BY SUM(total) DESC LIMIT 1

--- busy channels
SELECT channel FROM invoices GROUP BY channel HAVING COUNT(*) > 500 ORDER BY channel

--- channel and status
SELECT channel, status, COUNT(*) AS n, ROUND(AVG(total), 2) AS mean FROM invoices GROUP BY channel, status ORDER BY 1, 2

--- a pivot of channels
SELECT status,
  SUM(CASE WHEN channel = 'web' THEN total ELSE 0 END) AS web,
  SUM(CASE WHEN channel = 'store' THEN total ELSE 0 END) AS store,
  SUM(CASE WHEN channel = 'phone' THEN total END) AS phone
FROM invoices GROUP BY status ORDER BY status

--- turnover by year
SELECT YEAR(day) AS year, SUM(total) AS turnover FROM invoices GROUP BY YEAR(day) ORDER BY year

--- turnover by month
SELECT DATE_TRUNC('month', day) AS month, SUM(total) AS turnover FROM invoices GROUP BY month ORDER BY month

--- turnover by month of one year
SELECT EXTRACT(MONTH FROM day) AS month, COUNT(*) AS n FROM invoices
WHERE day >= '2024-01-01' AND day < '2025-01-01' GROUP BY month ORDER BY month

--- turnover by quarter
SELECT EXTRACT(YEAR FROM day) AS year, EXTRACT(QUARTER FROM day) AS quarter, SUM(total) AS turnover
FROM invoices GROUP BY 1, 2 ORDER BY 1, 2

--- turnover by week day
SELECT DAYNAME(day) AS name, COUNT(*) AS n FROM invoices GROUP BY name ORDER BY n DESC, name

--- the first and the last day
SELECT MIN(day) AS first, MAX(day) AS last FROM invoices

--- days between first and last
SELECT DATE_DIFF('day', MIN(day), MAX(day)) AS days FROM invoices

--- morning and evening
SELECT CASE WHEN EXTRACT(HOUR FROM moment) < 12 THEN 'morning' ELSE 'later' END AS part, COUNT(*) AS n
FROM invoices GROUP BY part ORDER BY part

--- large invoices
SELECT COUNT(*) FROM invoices WHERE total > 400

--- above the average
SELECT COUNT(*) FROM invoices WHERE total > (SELECT AVG(total) FROM invoices)

--- with a discount
SELECT COUNT(discount) AS with_discount, AVG(discount) AS mean FROM invoices

--- with none as nothing
SELECT AVG(COALESCE(discount, 0)) AS mean FROM invoices

--- what was let off
SELECT SUM(total * COALESCE(discount, 0)) AS let_off FROM invoices

--- net of discounts
SELECT channel, SUM(total * (1 - COALESCE(discount, 0))) AS net FROM invoices GROUP BY channel ORDER BY channel

--- totals in bands
SELECT FLOOR(total / 100) * 100 AS band, COUNT(*) AS n FROM invoices GROUP BY band ORDER BY band

--- the share of returns
SELECT channel, AVG(CASE WHEN status = 'returned' THEN 1.0 ELSE 0.0 END) AS share FROM invoices
GROUP BY channel ORDER BY channel

--- invoices of each segment
SELECT c.segment, COUNT(*) AS n FROM customers c JOIN invoices i ON i.customer_id = c.id GROUP BY c.segment ORDER BY 1

--- invoices of each segment the old way
SELECT c.segment, COUNT(*) AS n FROM customers c, invoices i WHERE i.customer_id = c.id GROUP BY c.segment ORDER BY 1

--- turnover of each city
SELECT city, SUM(total) AS turnover FROM customers INNER JOIN invoices ON customers.id = invoices.customer_id
WHERE status <> 'returned' GROUP BY city ORDER BY turnover DESC

--- turnover of each region
SELECT s.region, SUM(i.total) AS turnover FROM invoices i JOIN customers c ON c.id = i.customer_id
JOIN cities s ON s.name = c.city GROUP BY s.region ORDER BY s.region

--- customers without an invoice
SELECT COUNT(*) FROM customers c LEFT JOIN invoices i ON i.customer_id = c.id WHERE i.id IS NULL

--- customers without an invoice by a list
SELECT COUNT(*) FROM customers WHERE id NOT IN (SELECT customer_id FROM invoices)

--- customers without an invoice by a question
SELECT COUNT(*) FROM customers c WHERE NOT EXISTS (SELECT * FROM invoices i WHERE i.customer_id = c.id)

--- customers with an open invoice
SELECT segment, COUNT(*) AS n FROM customers c
WHERE EXISTS (SELECT 1 FROM invoices i WHERE i.customer_id = c.id AND i.status = 'open') GROUP BY segment ORDER BY segment

--- customers with an open invoice by a list
SELECT COUNT(*) FROM customers WHERE id IN (SELECT customer_id FROM invoices WHERE status = 'open')

--- customers of the web
SELECT COUNT(DISTINCT customer_id) FROM invoices WHERE channel = 'web'

--- customers by number of invoices
SELECT n, COUNT(*) AS customers FROM (SELECT customer_id, COUNT(*) AS n FROM invoices GROUP BY customer_id) t
WHERE n BETWEEN 3 AND 7 GROUP BY n ORDER BY n

--- invoices of a customer on average
SELECT AVG(n) FROM (SELECT customer_id, COUNT(*) AS n FROM invoices GROUP BY customer_id) AS per_customer

--- spending of a customer on average | near=0.1
SELECT AVG(spent) AS mean, MAX(spent) AS most FROM (SELECT customer_id, SUM(total) AS spent FROM invoices GROUP BY customer_id)

--- good customers
SELECT COUNT(*) AS good FROM (
  SELECT customer_id FROM invoices GROUP BY customer_id HAVING SUM(total) > 1500
) t

--- good customers by segment
SELECT segment, COUNT(*) AS good FROM customers
WHERE id IN (SELECT customer_id FROM invoices GROUP BY customer_id HAVING COUNT(*) > 6) GROUP BY segment ORDER BY segment

--- faithful customers
SELECT COUNT(*) FROM (
  SELECT customer_id, MIN(day) AS first, MAX(day) AS last FROM invoices GROUP BY customer_id
) t WHERE last - first > 365

--- days between invoices
SELECT AVG(DATE_DIFF('day', first, last)) AS days FROM (
  SELECT customer_id, MIN(day) AS first, MAX(day) AS last FROM invoices GROUP BY customer_id HAVING COUNT(*) > 1
) t

--- days after joining
SELECT AVG(DATE_DIFF('day', c.joined, i.day)) AS days FROM customers c JOIN invoices i ON i.customer_id = c.id

--- a question with a name
WITH web AS (SELECT * FROM invoices WHERE channel = 'web')
SELECT status, COUNT(*) AS n FROM web GROUP BY status ORDER BY status

--- two questions with names
WITH spent AS (SELECT customer_id, SUM(total) AS s FROM invoices GROUP BY customer_id),
     rich AS (SELECT customer_id FROM spent WHERE s > 1000)
SELECT COUNT(*) AS n FROM rich

--- how many lines
SELECT COUNT(*) AS n, SUM(quantity) AS pieces, SUM(quantity * price) AS worth FROM invoice_lines

--- pieces without naming anybody
SELECT SUM(pieces) FROM (SELECT quantity AS pieces FROM invoice_lines WHERE price > 10) t

--- everything of the lines
SELECT SUM(quantity) AS pieces FROM (SELECT * FROM invoice_lines) l

--- lines of an invoice on average
SELECT COUNT(*) * 1.0 / COUNT(DISTINCT invoice_id) AS lines FROM invoice_lines

--- pieces of each product
SELECT product_id, SUM(quantity) AS pieces FROM invoice_lines GROUP BY product_id ORDER BY pieces DESC, product_id LIMIT 5

--- names of products
SELECT p.name, SUM(l.quantity) AS pieces FROM invoice_lines l JOIN products p ON p.id = l.product_id
GROUP BY p.name ORDER BY p.name

--- best products
SELECT p.name, SUM(l.quantity * l.price) AS worth FROM products p JOIN invoice_lines l ON l.product_id = p.id
GROUP BY p.name ORDER BY worth DESC LIMIT 10

--- categories
SELECT c.name AS category, COUNT(*) AS lines, SUM(l.quantity) AS pieces
FROM invoice_lines l JOIN products p ON l.product_id = p.id JOIN categories c ON p.category_id = c.id
GROUP BY c.name ORDER BY c.name

--- categories of what is active
SELECT c.name, AVG(l.price) AS price FROM categories c JOIN products p ON p.category_id = c.id AND p.active
JOIN invoice_lines l ON l.product_id = p.id GROUP BY c.name HAVING COUNT(*) > 50 ORDER BY c.name

--- above the list price
SELECT COUNT(*) FROM invoice_lines l JOIN products p ON p.id = l.product_id WHERE l.price > p.price

--- margin on the list price
SELECT c.name, SUM(l.quantity * (l.price - p.price)) AS margin FROM invoice_lines l JOIN products p ON p.id = l.product_id
JOIN categories c ON c.id = p.category_id GROUP BY c.name ORDER BY margin DESC

--- lines of the web
SELECT SUM(l.quantity) AS pieces FROM invoice_lines l JOIN invoices i ON i.id = l.invoice_id WHERE i.channel = 'web'

--- pieces by channel and category
SELECT i.channel, c.name, SUM(l.quantity) AS pieces
FROM invoices i JOIN invoice_lines l ON l.invoice_id = i.id JOIN products p ON p.id = l.product_id
JOIN categories c ON c.id = p.category_id GROUP BY i.channel, c.name ORDER BY i.channel, c.name

--- pieces by segment
SELECT k.segment, SUM(l.quantity) AS pieces FROM customers k JOIN invoices i ON i.customer_id = k.id
JOIN invoice_lines l ON l.invoice_id = i.id GROUP BY k.segment ORDER BY k.segment

--- pieces by segment in brackets
SELECT segment, SUM(quantity) AS pieces FROM ((customers JOIN invoices ON customers.id = invoices.customer_id)
JOIN invoice_lines ON invoice_lines.invoice_id = invoices.id) GROUP BY segment ORDER BY segment

--- invoices with toys
SELECT COUNT(*) FROM invoices i WHERE EXISTS (
  SELECT 1 FROM invoice_lines l WHERE l.invoice_id = i.id
  AND l.product_id IN (SELECT p.id FROM products p JOIN categories c ON c.id = p.category_id WHERE c.name = 'toys'))

--- customers who bought tools
SELECT COUNT(DISTINCT i.customer_id) AS buyers FROM invoices i JOIN invoice_lines l ON l.invoice_id = i.id
JOIN products p ON p.id = l.product_id WHERE p.category_id = 6

--- invoices without a line
SELECT COUNT(*) FROM invoices i LEFT JOIN invoice_lines l ON l.invoice_id = i.id WHERE l.invoice_id IS NULL

--- totals of the lines
SELECT AVG(worth) FROM (SELECT invoice_id, SUM(quantity * price) AS worth FROM invoice_lines GROUP BY invoice_id) t

--- different products of a customer
SELECT AVG(n) AS products FROM (
  SELECT i.customer_id, COUNT(DISTINCT l.product_id) AS n FROM invoices i JOIN invoice_lines l ON l.invoice_id = i.id
  GROUP BY i.customer_id
) t

--- products that nobody lists
SELECT COUNT(*) AS inactive FROM products WHERE NOT active

--- the dearest products
SELECT name, price FROM products ORDER BY price DESC LIMIT 5

--- products of each category
SELECT c.name, COUNT(p.id) AS n, AVG(p.price) AS price FROM categories c LEFT JOIN products p ON p.category_id = c.id
GROUP BY c.name ORDER BY c.name

--- the largest city
SELECT name FROM cities WHERE thousands = (SELECT MAX(thousands) FROM cities)

--- a sum of two counts
SELECT (SELECT COUNT(*) FROM customers) + (SELECT COUNT(*) FROM invoices) AS rows

--- a top segment
SELECT segment, SUM(total) AS s FROM customers JOIN invoices ON invoices.customer_id = customers.id
GROUP BY segment ORDER BY s DESC FETCH FIRST 1 ROW ONLY

--- the second best channel
SELECT channel, SUM(total) AS s FROM invoices GROUP BY channel ORDER BY s DESC LIMIT 1 OFFSET 1

--- a comment in the middle
SELECT segment, -- who they are
  COUNT(*) /* how many */ AS n FROM customers GROUP BY segment ORDER BY segment;

--- distribution of orders per customer
SELECT n AS orders, COUNT(*) AS customers FROM (SELECT customer_id, COUNT(*) AS n FROM invoices GROUP BY customer_id) t WHERE n BETWEEN 1 AND 9 GROUP BY n ORDER BY n;

--- first purchase month
SELECT DATE_TRUNC('quarter', first_day) AS q, COUNT(*) FROM (SELECT customer_id, MIN(day) AS first_day FROM invoices GROUP BY customer_id) t GROUP BY 1 HAVING COUNT(*) > 0 ORDER BY 1;

--- median total | near=5
SELECT channel, MEDIAN(total) FROM invoices GROUP BY channel ORDER BY channel;

--- coalesce unknown
SELECT COALESCE(CAST(FLOOR(YEAR(birth) / 10) * 10 AS INTEGER), 0) AS decade, COUNT(*) FROM customers GROUP BY 1 ORDER BY 1;

--- intersect of customers
SELECT COUNT(*) FROM (SELECT customer_id FROM invoices WHERE channel = 'web' INTERSECT SELECT customer_id FROM invoices WHERE channel = 'store') t;

--- except of customers
SELECT COUNT(*) FROM (SELECT id FROM customers EXCEPT SELECT customer_id FROM invoices) t;

--- customers of many channels
SELECT channels, COUNT(*) FROM (SELECT customer_id, COUNT(DISTINCT channel) AS channels FROM invoices GROUP BY customer_id) t GROUP BY channels HAVING COUNT(*) > 0 ORDER BY channels
