-- Questions about the patients of a clinic and their conditions, as a doctor's assistant writes them.
-- | data=clinic

--- patients
SELECT COUNT(*) AS patients FROM patients

--- women and men
SELECT GENDER, COUNT(*) AS n FROM patients GROUP BY GENDER

--- women and men by words
SELECT CASE GENDER WHEN 'F' THEN 'women' WHEN 'M' THEN 'men' END AS who, COUNT(*) AS n FROM patients GROUP BY who ORDER BY who
--- year of birth
SELECT AVG(YEAR(BIRTHDATE)) AS born FROM patients

--- decades
SELECT FLOOR(YEAR(BIRTHDATE) / 10) * 10 AS decade, COUNT(*) AS n FROM patients
WHERE BIRTHDATE >= DATE '1950-01-01' AND BIRTHDATE < DATE '2010-01-01' GROUP BY 1 ORDER BY 1

--- before and after
SELECT BIRTHDATE < DATE '1980-01-01' AS older, COUNT(*) AS n FROM patients GROUP BY older ORDER BY older

--- age on a day
SELECT AVG(DATE_DIFF('year', BIRTHDATE, DATE '2024-01-01')) AS age FROM patients

--- races
SELECT RACE, COUNT(*) AS n FROM patients GROUP BY RACE HAVING COUNT(*) > 5 ORDER BY n DESC

--- races from a list
SELECT r.name, COUNT(p.Id) AS n FROM races r LEFT JOIN patients p ON p.RACE = r.name GROUP BY r.name ORDER BY r.name

--- the other races
SELECT RACE <> 'white' AS other, COUNT(*) AS n FROM patients GROUP BY other ORDER BY other NULLS FIRST
--- plain
SELECT RACE <> 'white' AS other, COUNT(*) AS n FROM patients GROUP BY other UNION ALL SELECT NULL, 0
ORDER BY other NULLS FIRST
--- expenses
SELECT SUM(HEALTHCARE_EXPENSES) AS total, AVG(HEALTHCARE_EXPENSES) AS mean FROM patients WHERE HEALTHCARE_EXPENSES > 0

--- expenses by gender
SELECT GENDER AS g, ROUND(AVG(HEALTHCARE_EXPENSES), 0) AS mean FROM patients GROUP BY g ORDER BY g

--- median expenses | near=5000
SELECT MEDIAN(HEALTHCARE_EXPENSES) AS half FROM patients WHERE HEALTHCARE_EXPENSES > 0

--- no expenses
SELECT COUNT(*) FILTER (WHERE HEALTHCARE_EXPENSES = 0) AS nothing, COUNT(*) AS everybody FROM patients

--- conditions
SELECT COUNT(*) AS conditions, COUNT(DISTINCT PATIENT) AS patients FROM conditions

--- asthma
SELECT COUNT(DISTINCT PATIENT) AS n FROM conditions WHERE DESCRIPTION ILIKE '%asthma%'

--- what there is
SELECT DESCRIPTION, COUNT(DISTINCT PATIENT) AS patients FROM conditions
GROUP BY DESCRIPTION HAVING COUNT(DISTINCT PATIENT) >= 200 ORDER BY patients DESC, DESCRIPTION

--- the commonest
SELECT DESCRIPTION, COUNT(*) AS n FROM conditions GROUP BY DESCRIPTION ORDER BY n DESC LIMIT 5

--- findings and disorders
SELECT CASE WHEN DESCRIPTION LIKE '%(finding)' THEN 'finding' WHEN DESCRIPTION LIKE '%(disorder)' THEN 'disorder' ELSE 'other' END
  AS kind, COUNT(*) AS n
FROM conditions GROUP BY kind ORDER BY kind

--- the kind in brackets
SELECT REGEXP_EXTRACT(DESCRIPTION, '\(([a-z]+)\)') AS kind, COUNT(*) AS n FROM conditions
WHERE DESCRIPTION LIKE '%(%' GROUP BY kind HAVING COUNT(*) > 300 ORDER BY n DESC
--- plain
SELECT REGEXP_EXTRACT(DESCRIPTION, '\(([a-z]+)\)', 1) AS kind, COUNT(*) AS n FROM conditions
WHERE DESCRIPTION LIKE '%(%' GROUP BY kind HAVING COUNT(*) > 300 ORDER BY n DESC

--- years of conditions
SELECT YEAR(START) AS year, COUNT(*) AS n FROM conditions WHERE START >= '2010-01-01' AND START < '2020-01-01'
GROUP BY YEAR(START) ORDER BY year

--- what is over
SELECT STOP IS NULL AS lasts, COUNT(*) AS n FROM conditions GROUP BY lasts ORDER BY lasts

--- how long
SELECT AVG(DATE_DIFF('day', START, STOP)) AS days FROM conditions WHERE STOP IS NOT NULL AND STOP >= START

--- how long in words
SELECT AVG(STOP - START) AS days FROM conditions WHERE STOP IS NOT NULL

--- conditions of a patient
SELECT AVG(n) AS mean, MIN(n) AS least, MAX(n) AS most
FROM (SELECT PATIENT, COUNT(*) AS n FROM conditions GROUP BY PATIENT) t

--- conditions of women and men
SELECT p.GENDER, COUNT(*) AS n FROM patients p JOIN conditions c ON c.PATIENT = p.Id GROUP BY p.GENDER ORDER BY 1

--- conditions of the old
SELECT COUNT(*) FROM conditions JOIN patients ON patients.Id = conditions.PATIENT WHERE YEAR(BIRTHDATE) < 1950

--- age at the first condition
SELECT AVG(DATE_DIFF('year', p.BIRTHDATE, f.first)) AS age
FROM patients p JOIN (SELECT PATIENT, MIN(START) AS first FROM conditions GROUP BY PATIENT) f ON f.PATIENT = p.Id

--- with and without stress
SELECT GENDER, COUNT(*) AS n FROM patients WHERE Id IN (SELECT PATIENT FROM conditions WHERE DESCRIPTION LIKE 'Stress%')
GROUP BY GENDER ORDER BY GENDER

--- both of two
SELECT COUNT(*) AS n FROM patients p
WHERE EXISTS (SELECT 1 FROM conditions c WHERE c.PATIENT = p.Id AND c.DESCRIPTION LIKE 'Stress%')
  AND EXISTS (SELECT 1 FROM conditions c WHERE c.PATIENT = p.Id AND c.DESCRIPTION LIKE '%sinusitis%')

--- one without the other
SELECT COUNT(*) AS n FROM patients p
WHERE p.Id IN (SELECT PATIENT FROM conditions WHERE DESCRIPTION LIKE 'Stress%')
  AND NOT EXISTS (SELECT 1 FROM conditions c WHERE c.PATIENT = p.Id AND c.DESCRIPTION LIKE '%sinusitis%')

--- whoever had many
SELECT COUNT(*) AS n FROM (SELECT PATIENT FROM conditions GROUP BY PATIENT HAVING COUNT(*) > 40) t

--- one beside the other
SELECT COUNT(DISTINCT a.PATIENT) AS n FROM conditions a JOIN conditions b ON a.PATIENT = b.PATIENT
WHERE a.DESCRIPTION LIKE 'Stress%' AND b.DESCRIPTION LIKE '%sinusitis%' AND b.START > a.START

--- several years active
SELECT years, COUNT(*) FROM (SELECT PATIENT, COUNT(DISTINCT EXTRACT(YEAR FROM START)) AS years FROM conditions GROUP BY PATIENT) t WHERE years BETWEEN 1 AND 10 GROUP BY years ORDER BY years

--- retention
WITH first AS (SELECT PATIENT, MIN(EXTRACT(YEAR FROM START)) AS y0 FROM conditions GROUP BY PATIENT) SELECT f.y0, COUNT(DISTINCT c.PATIENT) FROM first f JOIN conditions c ON c.PATIENT = f.PATIENT AND EXTRACT(YEAR FROM c.START) = f.y0 + 1 WHERE f.y0 BETWEEN 1990 AND 1999 GROUP BY f.y0 HAVING COUNT(DISTINCT c.PATIENT) > 0 ORDER BY f.y0

--- regex kind
SELECT REGEXP_EXTRACT(DESCRIPTION, '\((disorder|finding|situation)\)$', 1) AS kind, COUNT(*) FROM conditions WHERE DESCRIPTION LIKE '%)' GROUP BY 1 ORDER BY 2 DESC

--- age at event in bands
SELECT FLOOR(DATE_DIFF('year', p.BIRTHDATE, c.START) / 10) * 10 AS band, COUNT(*) AS n FROM conditions c JOIN patients p ON p.Id = c.PATIENT GROUP BY band HAVING COUNT(*) > 0 ORDER BY band

--- expense deciles
SELECT WIDTH_BUCKET(HEALTHCARE_EXPENSES, 0, 1000000, 10) AS decile, COUNT(*) FROM patients GROUP BY 1 HAVING COUNT(*) > 0 ORDER BY 1
--- plain
SELECT LEAST(FLOOR(HEALTHCARE_EXPENSES / 100000) + 1, 11)::INT, COUNT(*) FROM patients GROUP BY 1 ORDER BY 1

--- gender recoded
SELECT CASE GENDER WHEN 'F' THEN 'women' WHEN 'M' THEN 'men' END AS sex, AVG(DATE_DIFF('year', BIRTHDATE, DATE '2024-01-01')) AS mean_age FROM patients GROUP BY sex HAVING COUNT(*) > 0 ORDER BY sex
