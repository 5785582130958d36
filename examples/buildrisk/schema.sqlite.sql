-- What only SQLite says this way. Then schema.sql, which is the same on both.

-- Today: in Seoul (which has had UTC+9 all year since 1988), or the day that a test has
-- put into br_clock.
CREATE TABLE br_clock (day text NOT NULL);
CREATE VIEW br_today AS
SELECT day, replace(day, '-', '') AS ymd, replace(substr(day, 1, 7), '-', '') AS month,
       substr(day, 1, 4) AS year
FROM (SELECT coalesce((SELECT day FROM br_clock), date('now', '+9 hours')) AS day);

-- Months and days by their age: 0 is this month, today; -1 is tomorrow.
CREATE VIEW br_months AS
WITH RECURSIVE ages(age) AS (SELECT 0 UNION ALL SELECT age + 1 FROM ages WHERE age < 119)
SELECT age, strftime('%Y%m', day, 'start of month', (0 - age) || ' months') AS month
FROM br_today, ages;
CREATE VIEW br_days AS
WITH RECURSIVE ages(age) AS (SELECT -1 UNION ALL SELECT age + 1 FROM ages WHERE age < 3660)
SELECT age, date(br_today.day, (0 - age) || ' days') AS day,
       strftime('%Y%m%d', br_today.day, (0 - age) || ' days') AS ymd
FROM br_today, ages;
