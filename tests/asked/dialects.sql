-- Questions in other databases' SQL, each in its own words.
-- | data=shop

--- months of BigQuery | dialect=bigquery
SELECT DATE_TRUNC(day, MONTH) AS month, COUNT(*) AS n, SUM(total) AS revenue FROM `project.public.invoices` GROUP BY month ORDER BY month
--- plain
SELECT date_trunc('month', day), COUNT(*), SUM(total) FROM invoices GROUP BY 1 ORDER BY 1

--- a rate of BigQuery | dialect=bigquery
SELECT channel, COUNTIF(status = 'paid') AS paid, SAFE_DIVIDE(COUNTIF(status = 'paid'), COUNT(*)) AS rate FROM `public.invoices` GROUP BY 1 ORDER BY 1
--- plain
SELECT channel, COUNT(*) FILTER (status = 'paid'), AVG((status = 'paid')::INT) FROM invoices GROUP BY 1 ORDER BY 1

--- week days and months of BigQuery | dialect=bigquery
SELECT EXTRACT(DAYOFWEEK FROM day) AS wd, FORMAT_DATE('%Y-%m', day) AS ym, COUNT(1) AS c FROM invoices WHERE day BETWEEN '2024-01-01' AND '2024-02-29' GROUP BY wd, ym ORDER BY ym, wd
--- plain
SELECT dayofweek(day) + 1, strftime(day, '%Y-%m'), COUNT(1) FROM invoices WHERE day BETWEEN '2024-01-01' AND '2024-02-29' GROUP BY 1, 2 ORDER BY 2, 1

--- a median by its place | dialect=bigquery, near=5
SELECT APPROX_QUANTILES(total, 100)[OFFSET(50)] AS median FROM invoices
--- plain
SELECT median(total) FROM invoices

--- hours of one day | data=rides, dialect=bigquery
SELECT TIMESTAMP_TRUNC(started, HOUR) AS h, COUNT(*) AS n FROM rides WHERE DATE(started) = '2024-01-15' GROUP BY h HAVING COUNT(*) > 0 ORDER BY h
--- plain
SELECT date_trunc('hour', started), COUNT(*) FROM rides WHERE started::DATE = '2024-01-15' GROUP BY 1 ORDER BY 1

--- the age of invoices | dialect=bigquery
SELECT status, AVG(DATE_DIFF(DATE '2025-01-01', day, DAY)) AS age FROM invoices WHERE day >= DATE_SUB(DATE '2025-01-01', INTERVAL 90 DAY) GROUP BY status ORDER BY status
--- plain
SELECT status, AVG(date_diff('day', day, DATE '2025-01-01')) FROM invoices WHERE day >= DATE '2025-01-01' - 90 GROUP BY 1 ORDER BY 1

--- growth of buyers | dialect=bigquery
WITH monthly AS (SELECT DATE_TRUNC(day, MONTH) AS m, COUNT(DISTINCT customer_id) AS users FROM invoices GROUP BY 1) SELECT m, users, ROUND(SAFE_DIVIDE(users - LAG(users) OVER (ORDER BY m), LAG(users) OVER (ORDER BY m)), 3) AS growth FROM monthly ORDER BY m
--- plain
WITH monthly AS (SELECT DATE_TRUNC('month', day) AS m, COUNT(DISTINCT customer_id) AS users FROM invoices GROUP BY 1) SELECT m, users, ROUND((users - LAG(users) OVER (ORDER BY m)) / LAG(users) OVER (ORDER BY m), 3) AS growth FROM monthly ORDER BY m

--- a pivot of BigQuery | dialect=bigquery
SELECT * FROM (SELECT channel, status, total FROM invoices) PIVOT (SUM(total) FOR status IN ('paid', 'open', 'returned')) ORDER BY channel
--- plain
SELECT channel, SUM(total) FILTER (status = 'paid'), SUM(total) FILTER (status = 'open'), SUM(total) FILTER (status = 'returned') FROM invoices GROUP BY 1 ORDER BY 1

--- a list of bounds | dialect=bigquery
SELECT RANGE_BUCKET(total, [0, 100, 200, 300]) AS b, COUNT(*) AS n FROM invoices GROUP BY b HAVING COUNT(*) > 0 ORDER BY b
--- plain
SELECT CASE WHEN total < 100 THEN 1 WHEN total < 200 THEN 2 WHEN total < 300 THEN 3 ELSE 4 END AS b, COUNT(*) FROM invoices GROUP BY 1 ORDER BY 1

--- all but one | dialect=bigquery
SELECT * EXCEPT (n) FROM (SELECT city, COUNT(*) AS n, AVG(points) AS p FROM customers GROUP BY city) ORDER BY city
--- plain
SELECT city, AVG(points) FROM customers GROUP BY city ORDER BY city

--- months from an array | dialect=bigquery
SELECT d, n FROM UNNEST(GENERATE_DATE_ARRAY('2024-01-01', '2024-06-01', INTERVAL 1 MONTH)) AS d LEFT JOIN (SELECT DATE_TRUNC(day, MONTH) AS m, COUNT(*) AS n FROM invoices GROUP BY m) ON m = d ORDER BY d
--- plain
SELECT date_trunc('month', day) AS d, COUNT(*) FROM invoices WHERE day >= '2024-01-01' AND day < '2024-07-01' GROUP BY 1 ORDER BY 1

--- whether some day is busy | dialect=bigquery
SELECT EXTRACT(ISOWEEK FROM day) AS w, LOGICAL_OR(n > 10) AS many FROM (SELECT day, COUNT(*) AS n FROM invoices WHERE day BETWEEN '2024-05-01' AND '2024-05-31' GROUP BY day) GROUP BY w ORDER BY w
--- plain
SELECT week(day) AS w, bool_or(n > 10) FROM (SELECT day, COUNT(*) AS n FROM invoices WHERE day BETWEEN '2024-05-01' AND '2024-05-31' GROUP BY day) GROUP BY 1 ORDER BY 1

--- months in capitals | dialect=snowflake
SELECT DATE_TRUNC('MONTH', DAY) AS M, COUNT(*) AS N FROM SHOP.PUBLIC.INVOICES GROUP BY 1 ORDER BY 1
--- plain
SELECT date_trunc('month', day), COUNT(*) FROM invoices GROUP BY 1 ORDER BY 1

--- rates and shares of Snowflake | dialect=snowflake
SELECT channel, COUNT_IF(status = 'open') AS open_count, DIV0(COUNT_IF(status = 'open'), COUNT(*)) AS r, RATIO_TO_REPORT(COUNT(*)) OVER () AS share FROM invoices GROUP BY channel ORDER BY channel
--- plain
SELECT channel, COUNT(*) FILTER (status = 'open'), AVG((status = 'open')::INT), COUNT(*) / SUM(COUNT(*)) OVER () FROM invoices GROUP BY 1 ORDER BY 1

--- sizes of Snowflake | dialect=snowflake
SELECT IFF(total > 250, 'big', 'small') AS size, ZEROIFNULL(SUM(discount)) AS d, NVL(AVG(total), 0) AS a FROM invoices GROUP BY size ORDER BY size
--- plain
SELECT IF(total > 250, 'big', 'small') AS size, SUM(discount), AVG(total) FROM invoices GROUP BY 1 ORDER BY 1

--- months as texts of Snowflake | dialect=snowflake
SELECT TO_CHAR(day, 'YYYY-MM') AS ym, COUNT(*) AS n FROM invoices GROUP BY ym ORDER BY ym
--- plain
SELECT strftime(day, '%Y-%m'), COUNT(*) FROM invoices GROUP BY 1 ORDER BY 1

--- short names of week days | dialect=snowflake
SELECT DAYNAME(day) AS d, COUNT(*) AS n FROM invoices GROUP BY d ORDER BY d
--- plain
SELECT left(dayname(day), 3), COUNT(*) AS n FROM invoices GROUP BY 1 ORDER BY 1

--- ranks that qualify | dialect=snowflake
SELECT city, COUNT(*) AS n FROM customers GROUP BY city QUALIFY RANK() OVER (ORDER BY COUNT(*) DESC) <= 3 ORDER BY n DESC
--- plain
SELECT city, COUNT(*) AS n FROM customers GROUP BY city QUALIFY RANK() OVER (ORDER BY COUNT(*) DESC) <= 3 ORDER BY n DESC

--- months since joining | dialect=snowflake
SELECT DATEDIFF('month', joined, '2023-01-01'::DATE) AS months, COUNT(*) AS n FROM customers WHERE joined >= DATEADD('month', -12, '2023-01-01'::DATE) GROUP BY months HAVING COUNT(*) > 0 ORDER BY months
--- plain
SELECT datediff('month', joined, DATE '2023-01-01') AS months, COUNT(*) AS n FROM customers WHERE joined >= DATE '2022-01-01' GROUP BY months ORDER BY months

--- slices of six hours | data=rides, dialect=snowflake
SELECT TIME_SLICE(started, 6, 'HOUR') AS s, COUNT(*) AS n FROM rides WHERE started >= '2024-01-01' AND started < '2024-01-03' GROUP BY s ORDER BY s
--- plain
SELECT time_bucket(INTERVAL '6 hours', started, TIMESTAMP '2000-01-01') AS s, COUNT(*) FROM rides WHERE started < '2024-01-03' GROUP BY 1 ORDER BY 1

--- a pivot with names of its own | dialect=snowflake
SELECT * FROM (SELECT channel, status, total FROM invoices) PIVOT (SUM(total) FOR status IN ('paid', 'open')) AS p (channel, paid, open_) ORDER BY channel
--- plain
SELECT channel, SUM(total) FILTER (status = 'paid'), SUM(total) FILTER (status = 'open') FROM invoices GROUP BY 1 ORDER BY 1

--- about so large | dialect=snowflake, near=3
SELECT channel, MEDIAN(total) AS m, APPROX_PERCENTILE(total, 0.9) AS p FROM invoices GROUP BY channel ORDER BY channel
--- plain
SELECT channel, median(total), quantile_cont(total, 0.9) FROM invoices GROUP BY 1 ORDER BY 1

--- the year to date | dialect=snowflake
SELECT YEAR(day) AS y, MONTH(day) AS m, SUM(total) AS s, SUM(SUM(total)) OVER (PARTITION BY YEAR(day) ORDER BY MONTH(day)) AS ytd FROM invoices GROUP BY 1, 2 ORDER BY 1, 2

--- one line of a list | dialect=snowflake
SELECT BOOLAND_AGG(n > 0) AS all_positive, LISTAGG(channel, ',') WITHIN GROUP (ORDER BY channel) AS names FROM (SELECT channel, COUNT(*) AS n FROM invoices GROUP BY channel)
--- plain
SELECT TRUE, 'phone,store,web'

--- about so many | dialect=snowflake
SELECT c.city, APPROX_COUNT_DISTINCT(i.customer_id) AS buyers FROM invoices i JOIN customers c ON c.id = i.customer_id GROUP BY c.city ORDER BY c.city
--- plain
SELECT c.city, COUNT(DISTINCT i.customer_id) FROM invoices i JOIN customers c ON c.id = i.customer_id GROUP BY 1 ORDER BY 1

--- ends of months | dialect=snowflake
SELECT LAST_DAY(day) AS e, COUNT(*) AS n FROM invoices GROUP BY e ORDER BY e
--- plain
SELECT last_day(day), COUNT(*) FROM invoices GROUP BY 1 ORDER BY 1

--- months of MySQL | dialect=mysql
SELECT DATE_FORMAT(day, '%Y-%m') AS ym, COUNT(*) AS n, SUM(total) AS s FROM `public`.`invoices` GROUP BY ym ORDER BY ym
--- plain
SELECT strftime(day, '%Y-%m'), COUNT(*), SUM(total) FROM invoices GROUP BY 1 ORDER BY 1

--- sums of conditions | dialect=mysql
SELECT channel, SUM(status = 'paid') AS paid, SUM(IF(status = 'open', total, 0)) AS open_total FROM invoices GROUP BY channel ORDER BY channel
--- plain
SELECT channel, COUNT(*) FILTER (status = 'paid'), SUM(total) FILTER (status = 'open') FROM invoices GROUP BY 1 ORDER BY 1

--- week days and hours | dialect=mysql
SELECT DAYNAME(day) AS d, HOUR(moment) AS h, COUNT(*) AS n FROM invoices WHERE day < '2023-03-01' GROUP BY DAYNAME(day), HOUR(moment) HAVING COUNT(*) > 3 ORDER BY d, h
--- plain
SELECT dayname(day), hour(moment), COUNT(*) FROM invoices WHERE day < '2023-03-01' GROUP BY 1, 2 HAVING COUNT(*) > 3 ORDER BY 1, 2

--- the last month | dialect=mysql
SELECT COUNT(*) FROM invoices WHERE day >= DATE_SUB('2024-12-31', INTERVAL 1 MONTH) AND day <= '2024-12-31'
--- plain
SELECT COUNT(*) FROM invoices WHERE day >= DATE '2024-11-30'

--- years and weeks | dialect=mysql
SELECT YEARWEEK(day, 1) AS yw, COUNT(*) AS n FROM invoices WHERE day BETWEEN '2024-03-01' AND '2024-04-30' GROUP BY yw ORDER BY yw
--- plain
SELECT yearweek(day), COUNT(*) FROM invoices WHERE day BETWEEN '2024-03-01' AND '2024-04-30' GROUP BY 1 ORDER BY 1

--- complete years of age | dialect=mysql
SELECT TIMESTAMPDIFF(YEAR, birth, '2024-01-01') AS age, COUNT(*) AS n FROM customers WHERE birth IS NOT NULL GROUP BY age HAVING n > 9 ORDER BY age
--- plain
SELECT datesub('year', birth, DATE '2024-01-01') AS age, COUNT(*) AS n FROM customers WHERE birth IS NOT NULL GROUP BY age HAVING n > 9 ORDER BY age

--- a limit with two numbers | dialect=mysql
SELECT city, COUNT(*) n FROM customers GROUP BY city ORDER BY n DESC, city LIMIT 2, 3
--- plain
SELECT city, COUNT(*) n FROM customers GROUP BY city ORDER BY n DESC, city LIMIT 3 OFFSET 2

--- deviations of MySQL | dialect=mysql
SELECT QUARTER(day) AS q, STD(total) AS sd, VARIANCE(total) AS v FROM invoices GROUP BY q ORDER BY q
--- plain
SELECT quarter(day), stddev_pop(total), var_pop(total) FROM invoices GROUP BY 1 ORDER BY 1

--- a ranking in one line | dialect=mysql
SELECT GROUP_CONCAT(channel ORDER BY n DESC SEPARATOR ' > ') AS ranking FROM (SELECT channel, COUNT(*) AS n FROM invoices GROUP BY channel) t
--- plain
SELECT string_agg(channel, ' > ' ORDER BY n DESC) FROM (SELECT channel, COUNT(*) AS n FROM invoices GROUP BY channel) t

--- weekends | dialect=mysql
SELECT CASE WHEN WEEKDAY(day) >= 5 THEN 'weekend' ELSE 'weekday' END AS w, COUNT(*) AS n FROM invoices GROUP BY 1 ORDER BY 1
--- plain
SELECT CASE WHEN isodow(day) >= 6 THEN 'weekend' ELSE 'weekday' END AS w, COUNT(*) AS n FROM invoices GROUP BY 1 ORDER BY 1

--- the last eight weeks | dialect=redshift
SELECT DATE_TRUNC('week', day)::date AS wk, COUNT(DISTINCT customer_id) AS buyers FROM public.invoices WHERE day >= DATEADD(week, -8, '2024-12-30') GROUP BY 1 HAVING COUNT(*) > 0 ORDER BY 1
--- plain
SELECT date_trunc('week', day), COUNT(DISTINCT customer_id) FROM invoices WHERE day >= DATE '2024-11-04' GROUP BY 1 ORDER BY 1

--- decoded channels | dialect=redshift
SELECT channel, NVL(SUM(discount), 0) AS d, DECODE(channel, 'web', 'online', 'offline') AS kind FROM invoices GROUP BY channel ORDER BY channel
--- plain
SELECT channel, SUM(discount), IF(channel = 'web', 'online', 'offline') FROM invoices GROUP BY 1 ORDER BY 1

--- years of days | dialect=redshift
SELECT DATEDIFF(day, joined, '2023-01-01') / 365 AS years, COUNT(*) AS n FROM customers GROUP BY 1 HAVING COUNT(*) > 0 ORDER BY 1
--- plain
SELECT datediff('day', joined, DATE '2023-01-01') // 365, COUNT(*) FROM customers GROUP BY 1 ORDER BY 1

--- about so many buyers | dialect=redshift
SELECT APPROXIMATE COUNT(DISTINCT customer_id) AS c FROM invoices
--- plain
SELECT COUNT(DISTINCT customer_id) FROM invoices

--- from first to last | dialect=redshift, near=100000
SELECT EXTRACT(epoch FROM MAX(moment) - MIN(moment)) FROM invoices
--- plain
SELECT epoch(MAX(moment) - MIN(moment)) FROM invoices

--- each of the total | dialect=redshift
SELECT city, RATIO_TO_REPORT(n) OVER () AS share FROM (SELECT city, COUNT(*)::float AS n FROM customers GROUP BY city) ORDER BY city
--- plain
SELECT city, n / SUM(n) OVER () FROM (SELECT city, COUNT(*) AS n FROM customers GROUP BY city) ORDER BY city

--- a count without a star | dialect=duckdb
SELECT channel, count() AS n, avg(total)::DECIMAL(9,2) AS a, count(*) FILTER (status = 'paid') AS p FROM invoices GROUP BY ALL ORDER BY ALL

--- a list of answers | dialect=duckdb
SELECT date_part('year', day) AS y, list(channel ORDER BY channel) AS l FROM (SELECT DISTINCT day, channel FROM (SELECT date_trunc('year', day) AS day, channel, count(*) AS n FROM invoices GROUP BY ALL)) GROUP BY y ORDER BY y

--- the largest by its name | dialect=duckdb
SELECT arg_max(city, n) AS top, max(n) AS n FROM (SELECT city, count(*) AS n FROM customers GROUP BY city)

--- from first | dialect=duckdb
SELECT channel, max(n) - min(n) AS spread FROM (FROM invoices SELECT channel, status, count(*) AS n GROUP BY ALL) GROUP BY channel ORDER BY channel

--- weeks of DuckDB | dialect=duckdb
SELECT time_bucket(INTERVAL '1 week', day) AS w, sum(total) AS s FROM invoices WHERE day >= '2024-09-02' AND day < '2024-10-28' GROUP BY w ORDER BY w

--- percent of the web | dialect=postgres
SELECT date_trunc('month', day) AS m, count(*) FILTER (WHERE channel = 'web') * 100.0 / count(*) AS pct FROM invoices GROUP BY 1 ORDER BY 1

--- months from a series | dialect=postgres
SELECT gs.m::date, coalesce(x.n, 0) FROM generate_series('2024-01-01'::date, '2024-12-01'::date, '1 month') AS gs(m) LEFT JOIN (SELECT date_trunc('month', day) AS m, count(*) AS n FROM invoices GROUP BY 1) x ON x.m = gs.m ORDER BY 1
--- plain
SELECT date_trunc('month', day), count(*) FROM invoices WHERE day >= '2024-01-01' GROUP BY 1 ORDER BY 1

--- ages by ten years | dialect=postgres
SELECT floor(extract(year from age(date '2024-01-01', birth)) / 10) * 10 AS decade, count(*) FROM customers WHERE birth IS NOT NULL GROUP BY 1 HAVING count(*) > 0 ORDER BY 1

--- short names of months | dialect=postgres
SELECT to_char(day, 'Mon') AS m, count(*) FROM invoices GROUP BY to_char(day, 'Mon'), extract(month from day) ORDER BY extract(month from day)
--- plain
SELECT strftime(day, '%b'), count(*) FROM invoices GROUP BY 1, month(day) ORDER BY month(day)

--- texts that match | dialect=postgres
SELECT count(*) FROM customers WHERE email ~* '^c1' AND NOT (name ~ '9$')

--- the commonest state | dialect=postgres
SELECT channel, mode() WITHIN GROUP (ORDER BY status) FROM invoices GROUP BY channel ORDER BY channel
--- plain
SELECT channel, mode(status) FROM invoices GROUP BY 1 ORDER BY 1

--- an index by a named window | dialect=postgres
SELECT m, v, first_value(v) OVER w AS first, v / first_value(v) OVER w AS idx FROM (SELECT date_trunc('month', day) AS m, sum(total) AS v FROM invoices GROUP BY 1) t WINDOW w AS (ORDER BY m) ORDER BY m

--- two lists side by side | dialect=postgres
SELECT unnest(ARRAY['paid','open']) AS s, unnest(ARRAY[sum(CASE WHEN status='paid' THEN 1 ELSE 0 END), sum(CASE WHEN status='open' THEN 1 ELSE 0 END)]) AS n FROM invoices

--- an array of bounds | dialect=postgres
SELECT width_bucket(points, ARRAY[100, 500, 900]) AS b, count(*) FROM customers GROUP BY b ORDER BY b
--- plain
SELECT CASE WHEN points < 100 THEN 0 WHEN points < 500 THEN 1 WHEN points < 900 THEN 2 ELSE 3 END, count(*) FROM customers GROUP BY 1 ORDER BY 1

--- days from first to last | dialect=postgres, near=2
SELECT extract(epoch from (max(moment) - min(moment))) / 86400 AS days FROM invoices

--- complete years when joining | dialect=mysql
SELECT TIMESTAMPDIFF(YEAR, birth, joined) AS a, COUNT(*) AS n FROM customers WHERE birth IS NOT NULL GROUP BY a HAVING n > 9 ORDER BY a
--- plain
SELECT datesub('year', birth, joined) AS age, COUNT(*) AS n FROM customers WHERE birth IS NOT NULL GROUP BY age HAVING n > 9 ORDER BY age

--- mean age on a day | dialect=postgres
SELECT segment, AVG(DATE_PART('year', AGE(DATE '2001-06-15', birth))) AS a, COUNT(birth) FROM customers GROUP BY segment ORDER BY segment
--- plain
SELECT segment, AVG(datesub('year', birth, DATE '2001-06-15')), COUNT(birth) FROM customers GROUP BY segment ORDER BY segment

--- direct query sum | dialect=tsql
SELECT TOP (1000001) [t0].[channel], SUM([t0].[total]) AS [a0]
FROM ((select [_].[id] as [id], [_].[channel] as [channel], [_].[total] as [total], [_].[day] as [day] from [dbo].[invoices] as [_])) AS [t0]
GROUP BY [t0].[channel]

--- count rows big | dialect=tsql
SELECT COUNT_BIG(*) AS [a0] FROM ((select [$Table].[id] as [id] from [dbo].[invoices] as [$Table])) AS [t0]

--- where in or | dialect=tsql
SELECT TOP (1000001) [t0].[city], COUNT_BIG(*) AS [a0] FROM ((select [_].[city], [_].[segment] from [dbo].[customers] as [_])) AS [t0] WHERE ([t0].[segment] IN (N'company', N'school')) GROUP BY [t0].[city]

--- joined dimension | dialect=tsql
SELECT TOP (1000001) [t1].[region], SUM(CAST([t0].[points] as BIGINT)) AS [a0]
FROM ((select [_].[city], [_].[points] from [dbo].[customers] as [_])) AS [t0]
LEFT OUTER JOIN (select [$Table].[name] as [name], [$Table].[region] as [region] from [dbo].[cities] as [$Table]) AS [t1] on ([t0].[city] = [t1].[name])
GROUP BY [t1].[region]

--- month key | dialect=tsql
SELECT TOP (1000001) [t0].[m], SUM([t0].[total]) AS [a0] FROM (SELECT DATEFROMPARTS(YEAR([day]), MONTH([day]), 1) AS [m], [total] FROM [dbo].[invoices]) AS [t0] GROUP BY [t0].[m]
--- plain
SELECT date_trunc('month', day), SUM(total) FROM invoices GROUP BY 1

--- year and month columns | dialect=tsql
SELECT YEAR([t0].[day]) AS [c1], MONTH([t0].[day]) AS [c2], COUNT(*) AS [a0] FROM [dbo].[invoices] AS [t0] GROUP BY YEAR([t0].[day]), MONTH([t0].[day]) ORDER BY 1, 2

--- distinct count | dialect=tsql
SELECT COUNT_BIG(DISTINCT [t0].[customer_id]) + MAX(CASE WHEN [t0].[customer_id] IS NULL THEN 1 ELSE 0 END) AS [a0] FROM [dbo].[invoices] AS [t0]

--- is blank guard | dialect=tsql
SELECT [basetable0].[a0] AS [a0], [basetable0].[c1] AS [c1] FROM (SELECT SUM([t0].[total]) AS [a0], [t0].[status] AS [c1] FROM [dbo].[invoices] AS [t0] GROUP BY [t0].[status]) AS [basetable0] WHERE (NOT(([basetable0].[a0] IS NULL)))

--- semijoin | dialect=tsql
SELECT SUM([t0].[points]) AS [a0] FROM [dbo].[customers] AS [t0] INNER JOIN (SELECT [name] FROM [dbo].[cities] WHERE [region] = 'east') AS [semijoin1] ON ([semijoin1].[name] = [t0].[city])

--- top with ties sorted | dialect=tsql
SELECT TOP 3 [city], COUNT(*) AS [n] FROM [dbo].[customers] GROUP BY [city] ORDER BY COUNT(*) DESC, [city]

--- datediff days | dialect=tsql
SELECT AVG(CAST(DATEDIFF(day, [joined], '2023-01-01') AS FLOAT)) AS [tenure] FROM [dbo].[customers]

--- dateadd filter | dialect=tsql
SELECT COUNT(*) FROM [dbo].[invoices] WHERE [day] >= DATEADD(month, -6, '2024-12-31') AND [day] < '2024-12-31'

--- iif and isnull | dialect=tsql
SELECT [channel], SUM(IIF([status] = 'paid', 1, 0)) AS paid, AVG(ISNULL([discount], 0)) AS discount FROM [dbo].[invoices] GROUP BY [channel]

--- format | dialect=tsql
SELECT FORMAT([day], 'yyyy-MM') AS [m], COUNT(*) AS [n] FROM [dbo].[invoices] GROUP BY FORMAT([day], 'yyyy-MM') ORDER BY [m]
--- plain
SELECT strftime(day, '%Y-%m'), COUNT(*) FROM invoices GROUP BY 1 ORDER BY 1

--- eomonth | dialect=tsql
SELECT EOMONTH([day]) AS e, SUM([total]) AS s FROM [dbo].[invoices] GROUP BY EOMONTH([day]) ORDER BY e

--- offset fetch | dialect=tsql
SELECT [city], COUNT(*) AS n FROM [dbo].[customers] GROUP BY [city] ORDER BY n DESC, [city] OFFSET 2 ROWS FETCH NEXT 3 ROWS ONLY

--- percentile | dialect=tsql, near=3
SELECT DISTINCT [channel], PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY [total]) OVER (PARTITION BY [channel]) AS [median] FROM [dbo].[invoices]
--- plain
SELECT channel, median(total) FROM invoices GROUP BY 1

--- pivot by case | dialect=tsql
SELECT [channel], SUM(CASE WHEN [status] = N'paid' THEN [total] ELSE 0 END) AS [paid], SUM(CASE WHEN [status] = N'open' THEN [total] ELSE 0 END) AS [open] FROM [dbo].[invoices] WITH (NOLOCK) GROUP BY [channel]

--- datename | dialect=tsql
SELECT DATENAME(month, [day]) AS m, COUNT(*) AS n FROM [dbo].[invoices] GROUP BY DATENAME(month, [day])
--- plain
SELECT monthname(day), COUNT(*) FROM invoices GROUP BY 1

--- choose quarter | dialect=tsql
SELECT CONCAT('Q', DATEPART(quarter, [day])) AS q, COUNT(*) AS n FROM [dbo].[invoices] GROUP BY CONCAT('Q', DATEPART(quarter, [day])) ORDER BY q

--- len of names | dialect=tsql
SELECT LEN([name]) AS l, COUNT(*) AS n FROM [dbo].[customers] GROUP BY LEN([name])

--- try convert | dialect=tsql
SELECT SUM(TRY_CONVERT(int, [points])) FROM [dbo].[customers]

--- bit equals one | dialect=tsql
SELECT COUNT(*) FROM [dbo].[customers] WHERE [newsletter] = 1

--- week days of an answer | dialect=bigquery
SELECT EXTRACT(ISOWEEK FROM day) AS week, EXTRACT(DAYOFWEEK FROM day) AS w, SUM(n) AS n
FROM (SELECT day, COUNT(*) AS n FROM invoices WHERE day BETWEEN '2024-05-06' AND '2024-05-19' GROUP BY day)
GROUP BY week, w HAVING SUM(n) > 0 ORDER BY week, w
--- plain
SELECT week(day), dayofweek(day) + 1, COUNT(*) FROM invoices WHERE day BETWEEN '2024-05-06' AND '2024-05-19' GROUP BY 1, 2 ORDER BY 1, 2

--- a quotient of parts of dates | dialect=postgres
SELECT (extract(epoch from day) / 86400)::bigint % 7 AS d, extract(year from MIN(day)) / 10 AS tens, count(*) FROM invoices GROUP BY 1 ORDER BY 1
--- plain
SELECT epoch(day)::BIGINT // 86400 % 7, 202.3, count(*) FROM invoices GROUP BY 1 ORDER BY 1
