-- What only PostgreSQL says this way. Then schema.sql, which is the same on both.

-- Today: in Seoul, or the day that a test has put into br_clock.
CREATE TABLE br_clock (day text NOT NULL);
CREATE VIEW br_today AS
SELECT day, replace(day, '-', '') AS ymd, replace(substr(day, 1, 7), '-', '') AS month,
       substr(day, 1, 4) AS year
FROM (SELECT coalesce((SELECT day FROM br_clock),
                      to_char(now() AT TIME ZONE 'Asia/Seoul', 'YYYY-MM-DD')) AS day) t;

-- Months and days by their age: 0 is this month, today; -1 is tomorrow.
CREATE VIEW br_months AS
SELECT age, to_char(CAST(t.day AS date) - age * interval '1 month', 'YYYYMM') AS month
FROM br_today t, generate_series(0, 119) age;
CREATE VIEW br_days AS
SELECT age, to_char(CAST(t.day AS date) - age, 'YYYY-MM-DD') AS day,
       to_char(CAST(t.day AS date) - age, 'YYYYMMDD') AS ymd
FROM br_today t, generate_series(-1, 3660) age;

-- As SQLite has it: where `part` begins in `whole`, from 1 on; 0 when it is not there.
CREATE FUNCTION instr(whole text, part text) RETURNS integer
LANGUAGE sql IMMUTABLE STRICT RETURN strpos(whole, part);
