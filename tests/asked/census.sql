-- Questions about one table of people, a census, as students and data scientists write them.
-- | data=census

--- people
SELECT COUNT(*) FROM adult

--- sexes
SELECT sex, COUNT(*) AS n, AVG(age) AS age FROM adult GROUP BY sex ORDER BY sex

--- education
SELECT education, AVG(hours_per_week) AS hours FROM adult GROUP BY education ORDER BY hours DESC
--- plain
SELECT education, AVG(hours_per_week) AS hours FROM adult GROUP BY education ORDER BY hours DESC

--- high incomes
SELECT AVG(CASE WHEN income = '>50K' THEN 1.0 ELSE 0.0 END) AS share FROM adult

--- high incomes by a comparison
SELECT AVG(CAST(income = '>50K' AS INTEGER)) AS share FROM adult

--- high incomes by sex and race
SELECT sex, race, COUNT(*) AS n, SUM(CASE WHEN income = '>50K' THEN 1 ELSE 0 END) AS high FROM adult
GROUP BY sex, race ORDER BY sex, race

--- high incomes by a filter
SELECT education, COUNT(*) FILTER (WHERE income = '>50K') AS high, COUNT(*) AS n FROM adult
GROUP BY education ORDER BY education

--- ages in tens
SELECT FLOOR(age / 10) * 10 AS decade, COUNT(*) AS n FROM adult GROUP BY decade ORDER BY decade

--- ages in twenties
SELECT FLOOR(age / 20.0) * 20.0 AS bin, COUNT(*) AS n, AVG(capital_gain) AS gain FROM adult GROUP BY 1 ORDER BY 1

--- ages by remainder
SELECT age - age % 10 AS decade, COUNT(*) AS n FROM adult GROUP BY age - age % 10 ORDER BY 1

--- ages in a width
SELECT WIDTH_BUCKET(age, 10, 100, 9) AS bin, COUNT(*) AS n FROM adult GROUP BY bin HAVING COUNT(*) > 0 ORDER BY bin
--- plain
SELECT 1 + (age - 10) // 10 AS bin, COUNT(*) AS n FROM adult GROUP BY bin ORDER BY bin

--- every age
SELECT age, COUNT(*) AS n FROM adult WHERE age BETWEEN 20 AND 30 GROUP BY age ORDER BY age

--- quantiles of age | near=1
SELECT APPROX_QUANTILES(age, 4) AS quarters FROM adult
--- plain
SELECT quantile_disc(age, [0, 0.25, 0.5, 0.75, 1]) FROM adult

--- the ninetieth percentile | near=1
SELECT PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY hours_per_week) AS hours FROM adult

--- the median by another name | near=1
SELECT QUANTILE(age, 0.5) AS half FROM adult

--- two medians | near=1
SELECT sex, MEDIAN(age) AS age, MEDIAN(hours_per_week) AS hours FROM adult GROUP BY sex ORDER BY sex

--- least and most
SELECT MIN(age), MAX(age), MIN(hours_per_week), MAX(hours_per_week) FROM adult

--- spread
SELECT STDDEV_SAMP(age) AS s, VAR_POP(hours_per_week) AS v FROM adult

--- correlation
SELECT CORR(age, hours_per_week) AS r, COVAR_POP(age, education_num) AS c FROM adult

--- different values
SELECT COUNT(DISTINCT occupation) AS occupations, COUNT(DISTINCT native_country) AS countries FROM adult

--- different pairs
SELECT COUNT(DISTINCT (sex, race)) AS pairs FROM adult

--- different pairs in a list
SELECT COUNT(DISTINCT sex, race) AS pairs FROM adult
--- plain
SELECT COUNT(DISTINCT (sex, race)) FROM adult

--- occupations
SELECT occupation, COUNT(*) AS n FROM adult GROUP BY occupation ORDER BY n DESC LIMIT 5

--- occupations but for some
SELECT occupation, AVG(age) AS age FROM adult WHERE occupation IS NOT NULL AND occupation <> '?'
GROUP BY occupation HAVING COUNT(*) > 500 ORDER BY age

--- the commonest education
SELECT MODE(education) AS commonest FROM adult

--- the three commonest | near=0
SELECT APPROX_TOP_COUNT(education, 3) AS commonest FROM adult
--- plain
SELECT ['HS-grad', 'Some-college', 'Bachelors']

--- gains
SELECT SUM(capital_gain) AS gains, SUM(capital_loss) AS losses, SUM(capital_gain - capital_loss) AS net FROM adult

--- gains of those who have some
SELECT COUNT(*) AS n, AVG(capital_gain) AS mean FROM adult WHERE capital_gain > 0

--- logarithms
SELECT AVG(LN(1 + capital_gain)) AS mean FROM adult WHERE capital_gain > 0

--- long weeks
SELECT sex, COUNT(*) AS n FROM adult WHERE hours_per_week > 40 AND age < 65 GROUP BY sex ORDER BY sex

--- part time or not
SELECT IF(hours_per_week < 35, 'part', 'full') AS time, COUNT(*) AS n FROM adult GROUP BY time ORDER BY time

--- married or not
SELECT marital_status LIKE 'Married%' AS married, AVG(hours_per_week) AS hours FROM adult GROUP BY 1 ORDER BY 1

--- hours of all together
SELECT SUM(hours_per_week) * 52 AS hours_a_year FROM adult

--- a ratio of two sums
SELECT education, SUM(capital_gain) / SUM(hours_per_week) AS gain FROM adult
WHERE education IN ('Bachelors', 'Masters', 'Doctorate') GROUP BY education ORDER BY gain

--- the square root
SELECT SQRT(VAR_POP(age)) AS spread, POWER(AVG(age), 2) AS squared FROM adult

--- rounded up
SELECT CEIL(AVG(age)) AS up, FLOOR(AVG(age)) AS down, ROUND(AVG(age), 1) AS near FROM adult

--- a word for a number
SELECT sex, CASE WHEN AVG(hours_per_week) > 40 THEN 'long' ELSE 'short' END AS weeks FROM adult GROUP BY sex ORDER BY sex

--- a truth about a number
SELECT COUNT(*) > 8000 AS many FROM adult

--- countries
SELECT native_country, COUNT(*) AS n FROM adult GROUP BY native_country HAVING COUNT(*) > 30 ORDER BY n DESC, native_country

--- a table of the share
SELECT race, 100.0 * SUM(CASE WHEN sex = 'Female' THEN 1 ELSE 0 END) / COUNT(*) AS women FROM adult GROUP BY race ORDER BY race

--- education and income as a table
SELECT income, SUM(CASE WHEN education_num >= 13 THEN 1 ELSE 0 END) AS studied,
  SUM(CASE WHEN education_num < 13 THEN 1 ELSE 0 END) AS did_not
FROM adult GROUP BY income ORDER BY income

--- rolled up
SELECT sex, income, COUNT(*) AS n FROM adult GROUP BY ROLLUP (sex, income) ORDER BY sex NULLS LAST, income NULLS LAST

--- ten year labels
SELECT CONCAT(CAST(FLOOR(age / 10) * 10 AS INTEGER), 's') AS decade, COUNT(*) AS n FROM adult WHERE age < 80 GROUP BY 1 ORDER BY 1

--- z score
SELECT SUM(CASE WHEN ABS(hours_per_week - m.mean) > 2 * m.sd THEN 1 ELSE 0 END) AS outliers FROM adult, (SELECT AVG(hours_per_week) AS mean, STDDEV(hours_per_week) AS sd FROM adult) m

--- group by all
SELECT sex, race, COUNT(*) AS n FROM adult GROUP BY ALL ORDER BY ALL
