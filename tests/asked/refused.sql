-- Questions that stay refused, because their answers would be of persons, or would be changed by strangers: what is said, and
-- what a reader writes then.
-- | data=shop, refused

--- all rows
SELECT * FROM customers
--- words
COUNT(*)
--- mended
SELECT COUNT(*) FROM customers

--- some columns
SELECT name, city FROM customers WHERE segment = 'school'
--- words
COUNT(*)
--- mended
SELECT city, COUNT(*) FROM customers WHERE segment = 'school' GROUP BY city

--- the first rows
SELECT * FROM invoices ORDER BY total DESC LIMIT 10
--- words
COUNT(*)
--- mended
SELECT channel, COUNT(*) FROM invoices GROUP BY channel

--- the name behind a number
SELECT name FROM customers WHERE id = 17
--- words
COUNT(*)
--- mended
SELECT COUNT(*) FROM customers WHERE id = 17

--- addresses
SELECT email FROM customers WHERE newsletter AND email IS NOT NULL
--- words
COUNT(*)
--- mended
SELECT COUNT(*) FROM customers WHERE newsletter AND email IS NOT NULL

--- rows through a wrapper
SELECT * FROM (SELECT * FROM "public"."customers") AS "virtual_table" LIMIT 100
--- words
COUNT(*)
--- mended
SELECT COUNT(*) FROM customers

--- rows beside their mean
SELECT id, total, AVG(total) OVER () AS mean FROM invoices
--- words
GROUP BY
--- mended
SELECT channel, AVG(total) AS mean FROM invoices GROUP BY channel

--- numbered rows
SELECT customer_id, ROW_NUMBER() OVER (PARTITION BY customer_id ORDER BY day) AS place FROM invoices
--- words
GROUP BY
--- mended
SELECT AVG(n) FROM (SELECT customer_id, COUNT(*) AS n FROM invoices GROUP BY customer_id) t

--- the last invoice of each
SELECT customer_id, total FROM (
  SELECT customer_id, total, ROW_NUMBER() OVER (PARTITION BY customer_id ORDER BY day DESC) AS place FROM invoices
) t WHERE place = 1
--- words
person
--- mended
SELECT AVG(total) FROM (SELECT customer_id, MAX(total) AS total FROM invoices GROUP BY customer_id) t

--- totals of customers
SELECT customer_id, SUM(total) AS spent FROM invoices GROUP BY customer_id
--- words
person
--- mended
SELECT AVG(spent) FROM (SELECT customer_id, SUM(total) AS spent FROM invoices GROUP BY customer_id) t

--- the best customers
SELECT c.name, SUM(i.total) AS spent FROM customers c JOIN invoices i ON i.customer_id = c.id
GROUP BY c.id, c.name ORDER BY spent DESC LIMIT 10
--- words
person
--- mended
SELECT MAX(spent) FROM (SELECT customer_id, SUM(total) AS spent FROM invoices GROUP BY customer_id) t

--- texts put together
SELECT city, STRING_AGG(name, ', ') AS names FROM customers GROUP BY city
--- words
COUNT
row / person
--- mended
SELECT city, COUNT(*) AS n FROM customers GROUP BY city

--- rows in a list
SELECT channel, ARRAY_AGG(total) AS totals FROM invoices GROUP BY channel
--- words
COUNT / QUANTILES
row / person
--- mended
SELECT channel, APPROX_QUANTILES(total, 4) AS totals FROM invoices GROUP BY channel

--- any row
SELECT city, ANY_VALUE(name) AS somebody FROM customers GROUP BY city
--- words
COUNT
row / person
--- mended
SELECT city, COUNT(*) AS n FROM customers GROUP BY city

--- the least name
SELECT MIN(name) AS first FROM customers
--- words
COUNT
--- mended
SELECT COUNT(name) AS n FROM customers

--- the name with the most
SELECT ARG_MAX(name, points) AS best FROM customers
--- words
COUNT / MAX
row / person
--- mended
SELECT MAX(points) AS most FROM customers

--- customers beside each other
SELECT COUNT(*) FROM customers a JOIN customers b ON a.city = b.city AND a.id < b.id
--- words
a.id = b.id
--- mended
SELECT city, COUNT(*) AS n FROM customers GROUP BY city

--- everybody with everybody
SELECT COUNT(*) FROM customers a CROSS JOIN customers b
--- words
a.id = b.id
--- mended
SELECT COUNT(*) FROM customers a JOIN customers b ON a.id = b.id

--- invoices of the same day
SELECT COUNT(*) FROM invoices a, invoices b WHERE a.day = b.day AND a.customer_id <> b.customer_id
--- words
customer_id
--- mended
SELECT COUNT(*) FROM invoices a, invoices b WHERE a.day = b.day AND a.customer_id = b.customer_id

--- lines by another key
SELECT COUNT(*) FROM invoice_lines a JOIN invoice_lines b ON a.product_id = b.product_id
--- words
invoice_id
--- mended
SELECT COUNT(*) FROM invoice_lines a JOIN invoice_lines b ON a.product_id = b.product_id AND a.invoice_id = b.invoice_id

--- customers by what others have
SELECT COUNT(*) FROM customers c WHERE EXISTS (SELECT 1 FROM customers d WHERE d.city = c.city AND d.newsletter)
--- words
d.id = c.id
--- mended
SELECT COUNT(*) FROM customers c WHERE EXISTS (SELECT 1 FROM customers d WHERE d.id = c.id AND d.newsletter)

--- names of others
SELECT COUNT(*) FROM customers WHERE name IN (SELECT name FROM customers WHERE city = 'Genf')
--- words
id IN (SELECT
--- mended
SELECT COUNT(*) FROM customers WHERE id IN (SELECT id FROM customers WHERE city = 'Genf')

--- the largest of all
SELECT COUNT(*) FROM invoices WHERE total = (SELECT MAX(total) FROM invoices i WHERE i.channel = invoices.channel)
--- words
channel
--- mended
SELECT channel, MAX(total) AS most FROM invoices GROUP BY channel

--- a mean of one's city
SELECT COUNT(*) FROM customers c WHERE points > (SELECT AVG(d.points) FROM customers d WHERE d.city = c.city)
--- words
city
--- mended
SELECT city, AVG(points) AS mean FROM customers GROUP BY city

--- a file
SELECT * FROM read_csv('customers.csv')
--- words
customers
--- mended
SELECT COUNT(*) FROM customers

--- another table
SELECT COUNT(*) FROM custmers
--- words
customers
--- mended
SELECT COUNT(*) FROM customers

--- another column
SELECT AVG(pints) FROM customers
--- words
points
--- mended
SELECT AVG(points) FROM customers

--- another schema
SELECT COUNT(*) FROM private.customers
--- words
public
--- mended
SELECT COUNT(*) FROM public.customers

--- a change
DELETE FROM customers WHERE id = 17
--- words
SELECT
--- mended
SELECT COUNT(*) FROM customers WHERE id = 17

--- two statements
SELECT COUNT(*) FROM customers; SELECT COUNT(*) FROM invoices
--- words
one SELECT
--- mended
SELECT COUNT(*) FROM customers

--- chance
SELECT AVG(points) FROM customers WHERE RANDOM() < 0.1
--- words
leave it out
--- mended
SELECT AVG(points) FROM customers

--- unshipped orders | data=tpch
select l_orderkey, sum(l_extendedprice * (1 - l_discount)) as revenue, o_orderdate
from customer, orders, lineitem
where c_mktsegment = 'BUILDING' and c_custkey = o_custkey and l_orderkey = o_orderkey and o_orderdate < date '1995-03-15'
group by l_orderkey, o_orderdate
order by revenue desc, o_orderdate
limit 10
--- words
l_orderkey
--- mended
select o_orderdate, sum(l_extendedprice * (1 - l_discount)) as revenue
from customer, orders, lineitem
where c_mktsegment = 'BUILDING' and c_custkey = o_custkey and l_orderkey = o_orderkey and o_orderdate < date '1995-03-15'
group by o_orderdate
order by revenue desc, o_orderdate
limit 10

--- large orders of customers | data=tpch
select c_name, c_custkey, o_orderkey, o_totalprice, sum(l_quantity)
from customer join orders on c_custkey = o_custkey join lineitem on o_orderkey = l_orderkey
group by c_name, c_custkey, o_orderkey, o_totalprice
having sum(l_quantity) > 150
order by o_totalprice desc
limit 100
--- words
c_custkey / o_orderkey
--- mended
select c_mktsegment, sum(l_quantity) as quantity
from customer join orders on c_custkey = o_custkey join lineitem on o_orderkey = l_orderkey
group by c_mktsegment

--- compared with many
SELECT COUNT(*) FROM customers WHERE points > (SELECT AVG(points) FROM customers GROUP BY segment)
--- words
LIMIT 1
--- mended
SELECT COUNT(*) FROM customers WHERE points > (SELECT AVG(points) AS mean FROM customers GROUP BY segment ORDER BY mean DESC LIMIT 1)

--- a histogram beside a mean
SELECT AVG(points), HISTOGRAM(points) FROM customers
--- words
by itself
--- mended
SELECT HISTOGRAM(points) FROM customers

--- too many levels
SELECT city, segment, newsletter, points, COUNT(*) FROM customers GROUP BY CUBE (city, segment, newsletter, points)
--- words
GROUPING SETS
--- mended
SELECT city, segment, COUNT(*) FROM customers GROUP BY GROUPING SETS ((city, segment), (city), ())

--- levels of one person
SELECT id, city, COUNT(*) FROM customers GROUP BY ROLLUP (id, city)
--- words
without id
--- mended
SELECT city, COUNT(*) FROM customers GROUP BY ROLLUP (city)

--- a key of several, hashed
SELECT MD5(channel || '-' || status) AS key, COUNT(*) AS n FROM invoices GROUP BY 1
--- words
group by its argument
--- mended
SELECT MD5(key) AS key, n FROM (SELECT channel || '-' || status AS key, COUNT(*) AS n FROM invoices GROUP BY 1) t

--- a pivot as a statement
PIVOT invoices ON status USING COUNT(*) GROUP BY channel
--- words
FILTER (WHERE
--- mended
SELECT channel, COUNT(*) FILTER (WHERE status = 'paid') AS paid, COUNT(*) FILTER (WHERE status = 'open') AS open FROM invoices GROUP BY channel

--- at least all
SELECT COUNT(*) FROM products WHERE price >= ALL (SELECT price FROM products WHERE category_id = 2)
--- words
SELECT MAX(x)
--- mended
SELECT COUNT(*) FROM products WHERE price >= (SELECT MAX(price) FROM products WHERE category_id = 2)

--- the number of a week day, which a setting changes | dialect=tsql
SELECT DATEPART(weekday, [day]) AS w, COUNT(*) AS n FROM [dbo].[invoices] GROUP BY DATEPART(weekday, [day])
--- words
DATENAME(weekday, date)
--- mended
SELECT DATENAME(weekday, [day]) AS w, COUNT(*) AS n FROM [dbo].[invoices] GROUP BY DATENAME(weekday, [day])

--- cities in one line | dialect=postgres
SELECT segment, string_agg(DISTINCT city, ', ') FROM customers GROUP BY segment
--- words
single persons
--- mended
SELECT segment, string_agg(city, ', ' ORDER BY city) FROM (SELECT segment, city, COUNT(*) AS n FROM customers GROUP BY segment, city) t GROUP BY segment

--- all of them at least | dialect=postgres
SELECT bool_and(total >= 0) FROM invoices
--- words
COUNTIF
--- mended
SELECT COUNT(*) FILTER (WHERE NOT total >= 0) FROM invoices
