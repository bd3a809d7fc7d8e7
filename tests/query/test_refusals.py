"""What is refused: with the place in the text, a reason and an advice, and never with words of parser or engine."""

from __future__ import annotations

from dataclasses import replace

import pytest

from discreet.errors import QueryRefused
from discreet.query.catalog import Catalog, Column, Table
from discreet.query.parse import parse
from query import shop

REFUSED = [
    # by the name that was written, with what to write instead
    ("SELECT strftime(day, '%Y'), bool_or(ok) FROM visits GROUP BY 1", "BOOL_OR is not supported"),
    ("SELECT user_id, bool_and(ok) AS o FROM visits GROUP BY user_id", "MAX(CASE WHEN condition"),
    ("SELECT date_format(day, '%Y') AS y, COUNT(*) FROM visits GROUP BY y", "write strftime"),
    ("SELECT to_char(day, 'YYYY') AS y, COUNT(*) FROM visits GROUP BY y", "write strftime"),
    ("SELECT string_agg(city, ',') FROM visits", "STRING_AGG is not supported"),
    ("SELECT averge(spend) FROM visits", "did you mean 'avg'"),
    ("SELECT cnt(spend) FROM visits", "did you mean 'count'"),
    ("SELECT average(spend) FROM visits", "write AVG(x)"),
    (
        "SELECT region, COUNT(*) FROM visits GROUP BY region",
        "'regions' has it: join it, as in JOIN regions USING (city)",
    ),
    (
        "SELECT regions.region, COUNT(*) FROM visits GROUP BY 1",
        "in FROM (line 1, column 8): join it, as in JOIN regions",
    ),
    ("SELECT AVG(born) FROM visits", "the table 'users' has it: join it, as in JOIN users USING (user_id)"),
    ("SELECT AVG(x) FROM users", "there is no column 'x' (line 1, column 12): the table 'events' has it\n"),
    ("SELECT COUNT(*) FROM visits WHERE \"country\" = 'it'", "column 35): the table 'users' has it: join it, as"),
    ('SELECT "country", COUNT(*) FROM visits GROUP BY 1', "(line 1, column 8): the table 'users' has it: join it"),
    ('SELECT COUNT(*) FROM visits WHERE city = "country"', "is a text. As a name, the table 'users' has it"),
    ("SELECT COUNT(*) FROM visits WHERE city = country", ": 'country'. As a name, the table 'users' has it: jo"),
    ('SELECT COUNT(*) FROM visits WHERE "Rome" = city', "'Rome' is a text. As a name"),
    ("SELECT AVG(visits.spend) FROM visits v", "there is only: v"),
    ("SELECT city, COUNT(*) AS n, n / SUM(n) FROM visits GROUP BY city", "SUM(COUNT(*)) OVER ()"),
    ("SELECT user_id, arg_min(city, day) FROM visits GROUP BY user_id", "QUALIFY ROW_NUMBER() OVER"),
    ("SELECT COUNT(*) FROM visits WHERE city GLOB 'R*'", "write x LIKE"),
    ("SELECT isnull(spend) FROM visits", "write x IS NULL"),
    ("SELCT COUNT(*) FROM visits", "did you mean SELECT"),
    ("DESCRIBE visits", "curator.tables"),
    ("EXPLAIN SELECT COUNT(*) FROM visits", "curator.explain"),
    ("PIVOT visits ON city USING COUNT(*)", "FILTER"),
    ("SELECT COUNT(*) FROM visits WHERE city = Rome", "write it in quotes: 'Rome'"),
    ("SELECT COUNT(*) FROM visits WHERE city = 3", "write a text in quotes: '3'"),
    ("SELECT COUNT(*) FROM visits WHERE spend > '10'", "without quotes: 10"),
    ("SELECT COUNT(*) FROM visits WHERE spend > 'nan'", "CAST"),
    ("SELECT COUNT(*) FROM visits WHERE ok = 'yes'", "compare it with true or false"),
    ("SELECT COUNT(*) FROM visits WHERE day > 2023", "as in year(x) = 2024"),
    ("SELECT COUNT(*) FROM visits WHERE user_id = ANY (SELECT user_id FROM users)", "write x IN (SELECT"),
    ("SELECT AVG(datediff('day', 'soon', day)) FROM visits", "'soon' is not a date"),
    ("SELECT city, cty, COUNT(*) FROM visits GROUP BY city", "did you mean 'city'"),
    ("SELECT QUANTILE_CONT(spend, []) FROM visits", "list at least one, as in [0.25, 0.5, 0.75]"),
    ("SELECT COUNT(*) FROM visits WHERE day > current_date - 30", "current_date gives another value each time"),
    ("SELECT COUNT(*) FROM visits WHERE day > today() - 30", "today gives another value each time"),
    ("SELECT AVG(age(DATE '2024-01-01', day)) FROM visits", "write date_sub('year', start, end)"),
    # a column in the quotes of texts, where a text would be useless
    ("SELECT AVG('spend') FROM visits", 'names stand in double quotes: write avg("spend")'),
    ("SELECT MEDIAN('Spend') FROM visits", 'write median("spend")'),
    ("SELECT AVG(CAST('spend' AS DOUBLE)) FROM visits", 'write avg(CAST("spend" AS DOUBLE))'),
    ("SELECT COUNT('city') FROM visits", "'city' in single quotes is a text, and no column (line 1, column 14)"),
    ("SELECT COUNT(DISTINCT 'city') FROM visits", 'write count(DISTINCT "city")'),
    ("SELECT COUNT(*) FROM visits GROUP BY 'city'", 'names stand in double quotes: write "city"'),
    ("SELECT city, COUNT(*) FROM visits GROUP BY city ORDER BY 'city'", 'write "city"'),
    ("SELECT COUNT(*) FROM visits WHERE 'city' = 'Rome'", "write \"city\" = 'Rome'"),
    ("SELECT COUNT(*) FROM visits WHERE lower('city') = 'rome'", "write lower(\"city\") = 'rome'"),
    ("SELECT COUNT(*) FROM visits WHERE 'city' IN ('Rome', 'Oslo')", "write \"city\" IN ('Rome', 'Oslo')"),
    ("SELECT COUNT(*) FROM visits WHERE 'city' LIKE 'R%'", "write \"city\" LIKE 'R%'"),
    ("SELECT COUNT(*) FROM visits WHERE 'city' IS NULL", 'write "city" IS NULL'),
    ("SELECT COUNT(*) FROM visits WHERE 'spend' > 3", 'write "spend" > 3'),
    ("SELECT COUNT(*) FROM visits WHERE 'spend' > age", 'write "spend" > age'),
    ("SELECT COUNT(*) FROM visits WHERE 'spend' BETWEEN 3 AND 4", 'write "spend" BETWEEN 3 AND 4'),
    ("SELECT COUNT(*) FROM visits WHERE 'ok'", 'write "ok"'),
    ("SELECT SUM('spend' + 1) FROM visits", 'write "spend"'),
    ("SELECT AVG(year('day')) FROM visits", 'write "day"'),
    ("SELECT COUNT(*) FROM visits WHERE 'day' > DATE '2023-05-01'", "names stand in double quotes"),
    ("SELECT MAX('population') FROM regions", 'write max("population")'),
    ("SELECT AVG(n) FROM (SELECT user_id, MAX('spend') AS n FROM visits GROUP BY user_id)", 'write max("spend")'),
    ("SELECT city, COUNT(*) AS n FROM visits GROUP BY city HAVING 'n' > 3", 'write "n" > 3'),
    ("SELECT AVG('spnd') FROM visits", "names stand in double quotes or in none: did you mean 'spend'?"),
    ("SELECT COUNT('spnd') FROM visits", "to count rows, write COUNT(*); did you mean 'spend'?"),
    ("SELECT COUNT(DISTINCT 'spnd') FROM visits", "names stand in double quotes or in none: did you mean 'spend'?"),
    # rows of people
    ("SELECT * FROM visits", "rows of people"),
    ("SELECT spend FROM visits WHERE user_id = 17", "rows of people"),
    ("SELECT user_id, COUNT(*) FROM visits GROUP BY user_id", "one row for each person"),
    ("SELECT COUNT(*) FROM visits GROUP BY user_id", "one row for each person"),
    ("SELECT DISTINCT user_id FROM visits", "rows of people"),
    ("SELECT city FROM visits ORDER BY spend LIMIT 1", "choose among rows of people"),
    ("SELECT COUNT(*) FROM (SELECT * FROM visits LIMIT 10)", "choose among rows of people"),
    ("SELECT COUNT(*) FROM (SELECT * FROM visits ORDER BY spend)", "choose among rows of people"),
    ("SELECT COUNT(*) FROM visits TABLESAMPLE 10%", "sampling is not supported"),
    ("SELECT city, row_number() OVER (PARTITION BY city) FROM visits", "rows of several people"),
    ("SELECT COUNT(*) FROM visits QUALIFY row_number() OVER (PARTITION BY user_id ORDER BY day) = 1", "cannot stand"),
    ("SELECT COUNT(*) FROM visits WHERE spend > (SELECT AVG(spend) FROM visits)", "answer of its own"),
    ("SELECT COUNT(*) FROM visits WHERE city IN (SELECT city FROM visits)", "reads rows of people"),
    # EXISTS is allowed where IN is
    ("SELECT COUNT(*) FROM visits v WHERE EXISTS (SELECT 1 FROM users u WHERE u.born = v.age)", "reads rows of people"),
    ("SELECT COUNT(*) FROM visits v WHERE EXISTS (SELECT 1 FROM users u WHERE u.user_id = v.age)", "reads rows of peo"),
    ("SELECT COUNT(*) FROM visits v WHERE EXISTS (SELECT 1 FROM users u WHERE u.born = v.user_id)", "reads rows of p"),
    ("SELECT COUNT(*) FROM regions r WHERE EXISTS (SELECT 1 FROM visits v WHERE v.city = r.city)", "reads rows of peo"),
    (
        "SELECT COUNT(*) FROM events e WHERE EXISTS (SELECT 1 FROM users u WHERE u.user_id = e.x)",
        "reads rows of people",
    ),
    ("SELECT COUNT(*) FROM visits v WHERE EXISTS (SELECT 1 FROM users WHERE user_id = user_id)", "has no equality"),
    ("SELECT COUNT(*) FROM visits WHERE EXISTS (SELECT 1 FROM users)", "has no equality"),
    (
        "SELECT COUNT(*) FROM visits v WHERE EXISTS (SELECT 1 FROM users u WHERE u.user_id = v.user_id OR u.born = 1)",
        "has no equality",
    ),
    (
        "SELECT COUNT(*) FROM visits v WHERE EXISTS (SELECT 1 FROM users u WHERE u.user_id = v.user_id AND 1 > v.age)",
        "asks more about the rows outside",
    ),
    (
        "SELECT COUNT(*) FROM visits v WHERE EXISTS (SELECT 1 FROM users u WHERE u.user_id = v.user_id AND born = age)",
        "asks more about the rows outside",
    ),
    (
        "SELECT COUNT(*) FROM visits v WHERE EXISTS (SELECT COUNT(*) FROM users u WHERE u.user_id = v.user_id)",
        "write SELECT 1 in it",
    ),
    (
        "SELECT COUNT(*) FROM visits v WHERE EXISTS (SELECT 1 FROM users u WHERE u.user_id = v.user_id LIMIT 1)",
        "LIMIT is not supported here",
    ),
    (
        "SELECT COUNT(*) FROM visits v WHERE EXISTS (SELECT 1 FROM users u WHERE u.user_id = v.user_id GROUP BY born)",
        "GROUP BY is not supported here",
    ),
    (
        "SELECT COUNT(*) FROM visits WHERE spend > (SELECT MAX(population) FROM regions r WHERE r.city = visits.city)",
        "depends on 'visits.city' of the rows around it",
    ),
    ("SELECT COUNT(*) FROM visits v WHERE user_id IN (SELECT user_id FROM users WHERE born > v.age)", "JOIN (SELECT"),
    # only units are looked for among units
    ("SELECT COUNT(*) FROM visits WHERE user_id IN (SELECT age FROM visits)", "reads rows of people"),
    ("SELECT COUNT(*) FROM visits WHERE age IN (SELECT user_id FROM visits)", "reads rows of people"),
    ("SELECT COUNT(*) FROM visits WHERE 17 IN (SELECT user_id FROM visits)", "reads rows of people"),
    ("SELECT COUNT(*) FROM visits WHERE user_id + 1 IN (SELECT user_id FROM visits)", "reads rows of people"),
    ("SELECT COUNT(*) FROM visits WHERE user_id IN (SELECT user_id + 1 FROM visits)", "reads rows of people"),
    ("SELECT COUNT(*) FROM visits WHERE user_id IN (SELECT user_id, age FROM visits)", "reads rows of people"),
    (
        "SELECT COUNT(*) FROM visits WHERE user_id IN (SELECT user_id FROM visits LIMIT 1)",
        "choose among rows of people",
    ),
    ("SELECT COUNT(*) FROM visits WHERE user_id IN (SELECT MAX(user_id) FROM visits)", "answer of its own"),
    ("SELECT city FROM regions WHERE 17 IN (SELECT user_id FROM visits)", "reads rows of people"),
    ("SELECT COUNT(*) FROM events WHERE x IN (SELECT user_id FROM visits)", "reads rows of people"),
    (
        "SELECT COUNT(*) FROM (SELECT COUNT(*) AS n FROM visits) WHERE n IN (SELECT user_id FROM users)",
        "rows of people",
    ),
    ("SELECT COUNT(*) FROM visits GROUP BY city HAVING MAX(age) IN (SELECT user_id FROM users)", "rows of people"),
    (
        "SELECT COUNT(*) FROM visits v WHERE spend > (SELECT MIN(r.population) FROM regions r WHERE r.city = v.city)",
        "depends on 'v.city'",
    ),
    # joins
    ("SELECT COUNT(*) FROM visits v JOIN users u ON v.city = u.country", "without equating their units"),
    ("SELECT COUNT(*) FROM visits v JOIN users u ON v.user_id = u.user_id OR v.ok", "without equating their units"),
    ("SELECT COUNT(*) FROM visits v JOIN users u ON v.user_id = u.user_id + 0", "without equating their units"),
    ("SELECT COUNT(*) FROM visits, users", "without equating their units"),
    ("SELECT COUNT(*) FROM visits v, users u WHERE v.user_id = u.user_id OR v.ok", "without equating their units"),
    ("SELECT COUNT(*) FROM visits v CROSS JOIN users u", "without equating their units"),
    ("SELECT COUNT(*) FROM visits a JOIN visits b ON a.user_id = a.user_id", "without equating their units"),
    (
        "SELECT COUNT(*) FROM visits a LEFT JOIN users b USING (user_id) JOIN users c ON b.user_id = c.user_id",
        "without eq",
    ),
    ("SELECT COUNT(*) FROM visits v FULL JOIN users u ON v.user_id = u.user_id", "FULL JOIN of two tables"),
    ("SELECT COUNT(*) FROM visits v RIGHT JOIN users u ON v.user_id = u.user_id", "RIGHT JOIN of two tables"),
    ("SELECT COUNT(*) FROM visits NATURAL JOIN users", "NATURAL JOIN"),
    ("SELECT COUNT(*) FROM visits v SEMI JOIN users u ON v.user_id = u.user_id", "WHERE x IN (SELECT"),
    ("SELECT COUNT(*) FROM regions r LEFT JOIN visits v ON r.city = v.city", "belong to no unit"),
    ("SELECT COUNT(*) FROM visits v FULL JOIN regions r ON r.city = v.city", "belong to no unit"),
    ("SELECT COUNT(*) FROM events e JOIN regions r ON e.kind = r.city", "could multiply rows"),
    ("SELECT COUNT(*) FROM events e JOIN events f ON e.kind = f.kind", "every row is a unit"),
    (
        "SELECT COUNT(*) FROM visits v JOIN (SELECT city, COUNT(*) n FROM visits GROUP BY city) c ON v.city = c.city",
        "already",
    ),
    (
        "SELECT COUNT(*) FROM regions r JOIN visits v ON r.city = v.city AND v.age > (SELECT AVG(age) FROM visits)",
        "its own",
    ),
    (
        "SELECT COUNT(*) FROM (SELECT city, (SELECT COUNT(*) FROM visits) n FROM regions) r JOIN visits USING (city)",
        "already aggregated",
    ),
    (
        "SELECT COUNT(*) FROM visits WHERE city IN (SELECT city FROM regions WHERE 5 > (SELECT COUNT(*) FROM users))",
        "answer of its own",
    ),
    (
        "SELECT COUNT(*) FROM visits, ((SELECT city AS c FROM regions) ORDER BY (SELECT COUNT(*) FROM users)) r",
        "already aggregated",
    ),
    (
        "SELECT COUNT(*) FROM visits WHERE city IN ((SELECT city FROM regions) ORDER BY (SELECT COUNT(*) FROM users))",
        "answer of its own",
    ),
    ("SELECT COUNT(*) FROM (SELECT city FROM visits UNION ALL SELECT city FROM regions)", "UNION ALL of rows"),
    ("SELECT COUNT(*) FROM (SELECT user_id FROM visits UNION SELECT user_id FROM users)", "UNION removes"),
    ("SELECT COUNT(*) FROM visits EXCEPT SELECT COUNT(*) FROM users", "EXCEPT is not supported"),
    ("SELECT COUNT(*) FROM visits POSITIONAL JOIN users", ""),
    # groups and aggregates
    ("SELECT city, spend, COUNT(*) FROM visits GROUP BY city", "neither in GROUP BY nor inside"),
    ("SELECT city, COUNT(*) FROM visits", "neither in GROUP BY nor inside"),
    ("SELECT COUNT(*) FROM visits GROUP BY CUBE (city, category, day, age, ok)", "these are 32 groupings"),
    ("SELECT COUNT(*) FROM visits GROUP BY city WITH ROLLUP", "write GROUP BY ROLLUP (a, b)"),
    ("SELECT city FROM visits GROUP BY ROLLUP (city)", "neither keys nor aggregates"),
    ("SELECT DISTINCT city, COUNT(*) FROM visits GROUP BY ROLLUP (city)", "write them around it"),
    ("SELECT city, RANK() OVER (ORDER BY COUNT(*)) FROM visits GROUP BY ROLLUP (city)", "write them around it"),
    ("SELECT user_id, city, COUNT(*) FROM visits GROUP BY ROLLUP (user_id, city)", "UNION ALL of rows about people"),
    ("SELECT city, spend, COUNT(*) FROM visits GROUP BY ROLLUP (city)", "neither in GROUP BY nor inside"),
    ("SELECT COUNT(*) FROM visits GROUP BY ROLLUP (citty)", "did you mean 'city'"),
    ("SELECT city, GROUPING(category), COUNT(*) FROM visits GROUP BY ROLLUP (city)", "'category' is no key"),
    ("SELECT GROUPING(city), COUNT(*) FROM visits GROUP BY city", "it goes with GROUP BY ROLLUP"),
    (f"SELECT COUNT(*) FROM visits GROUP BY CUBE ({', '.join(f'age + {i}' for i in range(40))})", "groupings"),
    ("SELECT COUNT(*) FROM visits GROUP BY 3", "no column 3"),
    ("SELECT COUNT(*) FROM visits GROUP BY COUNT(*)", "GROUP BY an aggregate"),
    ("SELECT COUNT(*) FROM visits WHERE COUNT(*) > 3", "cannot stand here"),
    ("SELECT SUM(COUNT(*)) FROM visits", "cannot stand here"),
    ("SELECT SUM(city) FROM visits", "needs a number"),
    ("SELECT MAX(city) FROM visits", "needs a number"),
    ("SELECT AVG(day) FROM visits", "of a date is not supported"),
    ("SELECT SUM(DISTINCT spend) FROM visits", "DISTINCT inside"),
    ("SELECT COUNT(DISTINCT city, note) FROM visits", "one expression"),
    ("SELECT string_agg(city, ',') FROM visits", "not supported"),
    ("SELECT array_agg(spend) FROM visits", "not supported"),
    ("SELECT any_value(city) FROM visits", "not supported"),
    ("SELECT arg_max(city, spend) FROM visits", "not supported"),
    ("SELECT histogram(spend) FROM visits", "not known"),
    ("SELECT bool_and(ok) FROM visits", "not supported"),
    ("SELECT QUANTILE_CONT(spend, 1.5) FROM visits", "between 0 and 1"),
    ("SELECT QUANTILE_CONT(spend, age) FROM visits", "between 0 and 1"),
    ("SELECT QUANTILE_CONT(spend, [0.5, 0.9])[1] FROM visits", ""),
    # functions and expressions
    ("SELECT random() FROM visits", "another value each time"),
    ("SELECT COUNT(*) FROM visits WHERE day < current_date", "another value each time"),
    ("SELECT COUNT(*) FROM visits WHERE moment < now()", "another value each time"),
    ("SELECT COUNT(*) FROM visits WHERE uuid() = note", "another value each time"),
    ("SELECT getenv('HOME'), COUNT(*) FROM visits", "not known"),
    ("SELECT COUNT(*) FROM read_csv('/etc/passwd')", "cannot stand in FROM"),
    ("SELECT COUNT(*) FROM '/etc/passwd'", "no table"),
    ("SELECT COUNT(*) FROM glob('*')", "cannot stand in FROM"),
    ("SELECT COUNT(*) FROM information_schema.tables", "no schema"),
    ("SELECT COUNT(*) FROM range(10)", "cannot stand in FROM"),
    ("SELECT COUNT(*) FROM (VALUES (1)) t(x)", ""),
    ("SELECT COUNT(*) FROM visits, LATERAL (SELECT visits.spend) t", ""),
    ("SELECT COUNT(list_transform([spend], x -> x / 0)) FROM visits", ""),
    ("SELECT COUNT([spend]) FROM visits", "lists, structs"),
    ("SELECT SUM(spend[1]) FROM visits", ""),
    ("SELECT COUNT(repeat(city, 1000000000)) FROM visits", "repeat up to 1000 times"),
    ("SELECT COUNT(error('x')) FROM visits", "not known"),
    ("SELECT COUNT(*) FROM visits WHERE city LIKE note", "must be written out"),
    ("SELECT COUNT(*) FROM visits WHERE city LIKE '%a%b%c%d%e%f%'", "pattern is too large"),
    ("SELECT COUNT(*) FROM visits WHERE regexp_matches(city, note)", "must be written out"),
    ("SELECT COUNT(*) FROM visits WHERE regexp_matches(city, '(')", "cannot be read"),
    ("SELECT COUNT(*) FROM visits WHERE city ~ '(a{1000}){1000}'", "cannot be read"),
    ("SELECT COUNT(*) FROM visits WHERE city > 3", "do not go together"),
    ("SELECT COUNT(*) FROM visits WHERE day > 'tomorrow'", "is not a date"),
    ("SELECT COUNT(*) FROM visits WHERE city", "a condition is needed"),
    ("SELECT SUM(city + 1) FROM visits", "a number is needed"),
    ("SELECT SUM(ok + 1) FROM visits", "a number is needed"),
    ("SELECT SUM(lower(spend)) FROM visits", "a text is needed"),
    ("SELECT SUM(year(city)) FROM visits", "a date is needed"),
    ("SELECT SUM(spend // 3) FROM visits", "divides whole numbers"),
    ("SELECT SUM(round(spend, age)) FROM visits", "must be written out"),
    ("SELECT COUNT(day + INTERVAL (age) DAY) FROM visits", "must be written out"),
    ("SELECT COUNT(day + INTERVAL 99999999 YEAR) FROM visits", "too long"),
    ("SELECT COUNT(CAST(city AS BLOB)) FROM visits", "CAST to BLOB"),
    ("SELECT COUNT(CAST(day AS INTEGER)) FROM visits", "cannot be converted"),
    ("SELECT COUNT(strftime(day, '%Q')) FROM visits", "format of a date"),
    ("SELECT COUNT(replace(replace(city, 'a', 'x'), 'x', note)) FROM visits", "must be written out"),
    ("SELECT COUNT(?) FROM visits", "parameters"),
    # what to write instead
    ("SELECT HISTOGRAM(spend) FROM visits", "GROUP BY bucket"),
    ("SELECT STRING_AGG(city, ',') FROM visits", "GROUP BY x with COUNT(*)"),
    ("SELECT LIST(city) FROM visits", "GROUP BY x with COUNT(*)"),
    ("SELECT ANY_VALUE(city) FROM visits", "MIN, MAX or MEDIAN"),
    ("SELECT FIRST(city) FROM visits", "MIN, MAX or MEDIAN"),
    ("SELECT MODE(city) FROM visits", "ORDER BY n DESC LIMIT 1"),
    ("SELECT ARG_MAX(city, spend) FROM visits", "ORDER BY best DESC LIMIT 1"),
    ("SELECT BOOL_AND(spend > 1) FROM visits", "COUNT_IF(condition)"),
    ("SELECT PRODUCT(spend) FROM visits", "EXP(SUM(LN(x)))"),
    ("SELECT SUM_IF(spend, age > 3) FROM visits", "FILTER (WHERE condition)"),
    ("SELECT time_bucket(INTERVAL 1 DAY, day, DATE '2020-01-02'), COUNT(*) FROM visits GROUP BY 1", "shift the time"),
    ("SELECT time_bucket('1 day', day), COUNT(*) FROM visits GROUP BY 1", "INTERVAL 15 MINUTE"),
    ("SELECT time_bucket(INTERVAL 0 DAY, day), COUNT(*) FROM visits GROUP BY 1", "no width of a bucket"),
    ("SELECT time_bucket(INTERVAL (age) DAY, day), COUNT(*) FROM visits GROUP BY 1", "must be written out"),
    ("SELECT time_bucket(INTERVAL 1 DAY, city), COUNT(*) FROM visits GROUP BY 1", "a date is needed"),
    ("SELECT width_bucket(age, 10, 10, 3), COUNT(*) FROM visits GROUP BY 1", "these are no buckets"),
    ("SELECT width_bucket(age, 0, 10, 0), COUNT(*) FROM visits GROUP BY 1", "these are no buckets"),
    ("SELECT width_bucket(age, 0, spend, 3), COUNT(*) FROM visits GROUP BY 1", "must be written out"),
    ("SELECT width_bucket(city, 0, 1, 3), COUNT(*) FROM visits GROUP BY 1", "a number is needed"),
    ("SELECT COUNT(strptime(city, '%Q')) FROM visits", "format of a date"),
    ("SELECT COUNT(strptime(city, note)) FROM visits", "must be written out"),
    ("SELECT COUNT(strptime(city, ['%Y', '%m'])) FROM visits", "lists"),
    ("SELECT COUNT(strptime(age, '%Y')) FROM visits", "a text is needed"),
    # a group for each person
    ("SELECT user_id + 0 AS k, COUNT(*) FROM visits GROUP BY k", "a group of their own"),
    ("SELECT 1 + (-user_id), COUNT(*) FROM visits GROUP BY 1", "a group of their own"),
    ("SELECT user_id::DOUBLE - 1, COUNT(*) FROM visits GROUP BY ALL", "a group of their own"),
    ("SELECT city || CAST(user_id AS VARCHAR) AS k, COUNT(*) FROM visits GROUP BY k", "a group of their own"),
    ("SELECT concat('u', user_id), COUNT(*) FROM visits GROUP BY 1", "a group of their own"),
    ("SELECT 2 * user_id AS k, COUNT(*) FROM visits GROUP BY k", "a group of their own"),
    ("SELECT COALESCE(user_id, 0) AS k, COUNT(*) FROM visits GROUP BY k", "a group of their own"),
    ("SELECT k, COUNT(*) FROM (SELECT user_id + 1 AS k FROM visits) GROUP BY k", "a group of their own"),
    ("SELECT s.k, COUNT(*) FROM (SELECT CAST(user_id AS VARCHAR) AS k FROM visits) s GROUP BY 1", "of their own"),
    ("SELECT AVG(n) FROM (SELECT k, COUNT(*) AS n FROM (SELECT -user_id AS k FROM visits) GROUP BY k)", "of their own"),
    (
        "WITH a AS (SELECT user_id || 'x' AS k FROM visits), b AS (SELECT k AS l FROM a) SELECT l FROM b GROUP BY l",
        "of their own",
    ),
    ("SELECT DISTINCT user_id + 1 AS k FROM visits", "a group of their own"),
    ("SELECT user_id, COUNT(*) AS n FROM visits GROUP BY user_id ORDER BY n", "choose among people"),
    ("SELECT AVG(n) FROM (SELECT COUNT(*) AS n FROM visits GROUP BY user_id LIMIT 5)", "choose among people"),
    # names
    ("SELECT COUNT(*) FROM visit", "did you mean 'visits'"),
    ("SELECT SUM(spnd) FROM visits", "did you mean 'spend'"),
    ("SELECT SUM(v.spend) FROM visits", "there is only: visits"),
    ("SELECT SUM(flor(spend)) FROM visits", "did you mean 'floor'"),
    ('SELECT COUNT(*) FROM visits WHERE city = "Rome"', "texts in single ones: 'Rome' is a text"),
    ("SELECT getenv(city), COUNT(*) FROM visits GROUP BY 1", " more."),
    ("SELECT lpad(city, 5, ''), COUNT(*) FROM visits GROUP BY 1", "cannot be filled up"),
    ("SELECT lpad(city, 100000, 'x'), COUNT(*) FROM visits GROUP BY 1", "cannot be filled up"),
    ("SELECT rpad(city, age, 'x'), COUNT(*) FROM visits GROUP BY 1", "must be written out"),
    ("SELECT regexp_replace(city, '(a)', '\\1\\1', 'g'), COUNT(*) FROM visits GROUP BY 1", "REGEXP_EXTRACT"),
    ("SELECT regexp_replace(city, '(', 'x'), COUNT(*) FROM visits GROUP BY 1", "cannot be read"),
    ("SELECT regexp_replace(city, 'a', 'x', 'q'), COUNT(*) FROM visits GROUP BY 1", "flags are not known"),
    ("SELECT regexp_replace(city, city, 'x'), COUNT(*) FROM visits GROUP BY 1", "must be written out"),
    ("SELECT qqq AS qqq, COUNT(*) FROM visits GROUP BY qqq", "there are: user_id"),
    (
        "SELECT COUNT(*) FROM visits a JOIN visits b ON a.user_id = b.user_id WHERE city = 'x'",
        "ambiguous (line 1, column 76): say which one is meant: a.city, b.city",
    ),
    (
        'SELECT COUNT(*) FROM visits "my a" JOIN visits b ON "my a".user_id = b.user_id WHERE city = \'x\'',
        'which one is meant: "my a".city, b.city',
    ),
    (
        "SELECT SUM(spend) FROM (SELECT *, 2 * spend AS spend FROM visits) AS v",
        "'v' has two columns of this name; give one of them another where it is made, or leave one out",
    ),
    ("SELECT SUM(spend) FROM (SELECT *, spend AS spend FROM visits) AS v", "as in SELECT * EXCLUDE (spend)"),
    ("SELECT SUM(spend) FROM (SELECT *, 2 * spend AS spend FROM visits)", "another name where it is made"),
    ("SELECT SUM(visits.main.spend) FROM visits", ""),
    ("SELECT when, COUNT(*) FROM visits GROUP BY 1", 'is written "when"'),
    ("SELECT city, COUNT(*) FROM visits", "COUNT(DISTINCT city)"),
    ("SELECT spend, COUNT(*) FROM visits", "AVG(spend)"),
    ("SELECT COUNT(*) FROM visits GROUP BY", "GROUP BY names nothing"),
    # statements and text
    ("", "empty"),
    ("   -- nothing", "empty"),
    ("SELECT", "nothing is selected"),
    ("SELECT COUNT(*) FROM visits; SELECT COUNT(*) FROM users", "one SELECT"),
    ("DROP TABLE visits", "only questions"),
    *(
        (f"{statement} visits", "discreet answers SELECT questions only, and never changes tables")
        for statement in (
            "DELETE FROM",
            "update",
            "INSERT INTO",
            "DROP TABLE",
            "CREATE TABLE",
            "ALTER TABLE",
            "TRUNCATE",
        )
    ),
    ("WITH x AS (SELECT 1) DELETE FROM visits", "never changes tables"),
    ("SELECT TOP 5 city, COUNT(*) FROM visits GROUP BY city", "write LIMIT 5 at the end"),
    ("SELECT DISTINCT top (12) city FROM visits", "(line 1, column 17): write LIMIT 12 at the end"),
    ("SELECT * FROM (SELECT TOP 2 city, COUNT(*) FROM visits GROUP BY city)", "write LIMIT 2 at the end"),
    ("SELECT city, COUNT(*) FROM visits GROUP BY city FETCH FIRST 3 ROWS WITH TIES", "such as LIMIT 3"),
    ("SELECT city, COUNT(*) FROM visits GROUP BY city FETCH FIRST 3 PERCENT ROWS ONLY", "such as LIMIT 3"),
    ("SELECT city, COUNT(*) FROM visits GROUP BY city LIMIT 10 PERCENT", "such as LIMIT 3"),
    ("SELECT city FROM visits FETCH FIRST 3 ROWS ONLY", "choose among rows of people"),
    ("INSERT INTO visits SELECT * FROM visits", "only questions"),
    ("COPY visits TO 'x.csv'", "only questions"),
    ("PRAGMA database_list", "only questions"),
    ("SET threads = 1", "only questions"),
    ("EXPLAIN SELECT COUNT(*) FROM visits", "only questions"),
    ("SELECT COUNT(*) INTO x FROM visits", "leave INTO out"),
    ("SELECT COUNT(* FROM visits", "cannot be read"),
    ("SELECT 'unfinished FROM visits", "cannot be read"),
    ("SELECT COUNT(*) FORM visits", "column 17): did you mean FROM?"),
    ("SELECT COUNT(*) FROM visits WHER age > 3", "column 29): did you mean WHERE?"),
    ("SELECT city, COUNT(*) FROM visits GRUOP BY city", "did you mean GROUP?"),
    ("SELECT city, COUNT(*) FROM visits GROUP BY city ODER BY city", "did you mean ORDER?"),
    ("SELECT city, COUNT(*) FROM visits GROUP city", "write GROUP BY"),
    ("SELECT COUNT(*) FROM visits JION users USING (user_id)", "did you mean JOIN?"),
    ("SELECT `city`, COUNT(*) FROM visits GROUP BY `city`", "column 8): write city"),
    ("SELECT COUNT(*) AS `all rows` FROM visits", 'write "all rows"'),
    ("SELECT ARG_MAX(city, spend) FROM visits", "ARG_MAX is not supported (line 1, column 8)"),
    ("SELECT 1 + SUM(STRING_AGG(city, ',')) FROM visits", "STRING_AGG is not supported (line 1, column 16)"),
    ("WITH RECURSIVE a AS (SELECT 1 AS x UNION ALL SELECT x + 1 FROM a) SELECT * FROM a", "RECURSIVE"),
    ("SELECT \ue0001\ue001", "characters without a meaning"),
    ("SELECT " + "(" * 3000 + "1" + ")" * 3000, "nested too deeply"),
    ("SELECT COUNT(*) FROM visits WHERE " + "NOT " * 4000 + "ok", "nested too deeply"),
    ("SELECT COUNT(*) FROM visits WHERE age IN (" + ", ".join(map(str, range(5000))) + ")", "too l"),
    ("SELECT '" + "x" * 30_000 + "' FROM visits", "too long"),
]


@pytest.mark.parametrize(("text", "words"), REFUSED, ids=[str(i) for i in range(len(REFUSED))])
def test_what_is_not_understood_is_refused_with_advice(text, words):
    with pytest.raises(QueryRefused) as caught:
        parse(text, shop.CATALOG)
    message = str(caught.value)
    assert words in message
    assert caught.value.advice
    assert not any(foreign in message.lower() for foreign in ("sqlglot", "binder error", "parser error", "traceback"))
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 'city' AS what, city, COUNT(*) FROM visits GROUP BY 1, 2",
        "SELECT 'city' AS what, city, COUNT(*) FROM visits GROUP BY ALL",
        "SELECT COUNT(*) FROM visits WHERE note = 'city'",
        "SELECT COUNT(*) FROM visits WHERE note IN ('city', 'age')",
        "SELECT CASE WHEN ok THEN 'city' ELSE 'age' END AS k, COUNT(*) FROM visits GROUP BY k",
        "SELECT COUNT(DISTINCT COALESCE(city, 'city')) FROM visits",
        "SELECT COUNT(1), SUM(1) FROM visits WHERE 'a' = 'a'",
    ],
)
def test_a_text_that_is_the_name_of_a_column_stays_a_text_where_texts_have_a_meaning(text: str) -> None:
    assert parse(text, shop.CATALOG).blocks


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("SELECT AVG({}) FROM visits", "length of stay"),
        ("SELECT {}, COUNT(*) FROM visits GROUP BY 1", "Length  of stay"),
        ("SELECT COUNT(*) FROM visits WHERE {} > 3", "length of stay"),
        ("SELECT AVG({}) FROM visits WHERE note = 'length of stay'", "length of\nstay"),
        ("SELECT COUNT(*) FROM visits WHERE {} = 3", "2nd try"),
    ],
)
def test_a_name_with_spaces_that_stands_without_quotes_is_shown_with_them(text: str, place: str) -> None:
    columns = (*shop.VISITS.columns, Column("length of stay", "INTEGER"), Column("2nd try", "INTEGER"))
    catalog = Catalog({"visits": replace(shop.VISITS, columns=columns)})
    with pytest.raises(QueryRefused) as caught:
        parse(text.format(place), catalog)
    name = "2nd try" if "2" in place else "length of stay"
    assert f'there is a column "{name}": ' in caught.value.advice
    before = text.partition("{")[0]
    assert (caught.value.line, caught.value.column) == (1, len(before) + 1)
    assert caught.value.snippet.splitlines()[1].count("^") == len(place.partition("\n")[0])
    assert parse(text.format(f'"{name}"'), catalog).blocks


def test_a_name_with_spaces_elsewhere_is_not_blamed_for_an_error() -> None:
    columns = (*shop.VISITS.columns, Column("length of stay", "INTEGER"))
    catalog = Catalog({"visits": replace(shop.VISITS, columns=columns)})
    with pytest.raises(QueryRefused, match="check commas"):
        parse("SELECT AVG(\"length of stay\"), 'length of stay' AS t FROM visits WHERE (", catalog)


def test_a_refusal_points_at_the_place():
    with pytest.raises(QueryRefused) as caught:
        parse("SELECT city,\n       SUM(spnd) AS total\nFROM visits GROUP BY city", shop.CATALOG)
    refusal = caught.value
    assert (refusal.line, refusal.column) == (2, 12)
    assert refusal.snippet == "       SUM(spnd) AS total\n           ^^^^"
    assert str(refusal) == (
        "there is no column 'spnd' (line 2, column 12): did you mean 'spend'?\n"
        "           SUM(spnd) AS total\n"
        "               ^^^^"
    )


@pytest.mark.parametrize("word", ["current_date", "CURRENT_DATE", "today()", "current_timestamp", "now()", "localtime"])
def test_what_gives_another_value_each_time_is_pointed_at(word: str) -> None:
    text = f"SELECT COUNT(*) FROM visits WHERE note <> 'current_date' AND day > {word} - INTERVAL 30 DAY"
    with pytest.raises(QueryRefused, match="gives another value each time") as caught:
        parse(text, shop.CATALOG)
    assert caught.value.column == text.rindex(word) + 1
    assert caught.value.snippet.splitlines()[1].count("^") in (len(word), len(word.removesuffix("()")))


def test_texts_cannot_be_grown_without_end():
    inner = "SELECT user_id, city AS t FROM visits"
    for _ in range(14):
        inner = f"SELECT user_id, t || t AS t FROM ({inner})"
    with pytest.raises(QueryRefused, match="grows too large"):
        parse(f"SELECT COUNT(t) FROM ({inner})", shop.CATALOG)


def test_names_that_are_used_many_times_cannot_make_the_planner_work_without_end():
    text = "WITH a0 AS (SELECT COUNT(*) AS n FROM visits)"
    for i in range(12):
        text += f", a{i + 1} AS (SELECT x.n FROM a{i} x JOIN a{i} y ON x.n = y.n)"
    with pytest.raises(QueryRefused, match="too many tables"):
        parse(f"{text} SELECT * FROM a12", shop.CATALOG)


@pytest.mark.parametrize("operator", ["+", "-"])
@pytest.mark.parametrize("term", ["COUNT(*)", "SUM(spend)"])
def test_a_long_sum_is_planned_term_by_term(term: str, operator: str) -> None:
    """Each side of + was looked at twice: forty terms would have taken for ever."""
    question = parse(f"SELECT {operator.join([term] * 40)} AS n FROM visits", shop.CATALOG)
    assert len(question.blocks[0].aggregates) == 1
    inside = parse(f"SELECT SUM({operator.join(['spend'] * 40)}) AS n FROM visits", shop.CATALOG)
    assert inside.blocks[0].aggregates[0].bounds is not None


@pytest.mark.parametrize("end", [";", "; -- done", " -- done", ";\n/* done */\n", ";;"])
def test_what_stands_behind_the_question_does_not_matter(end: str) -> None:
    plain = parse("SELECT COUNT(*) AS n FROM visits", shop.CATALOG)
    assert parse(f"SELECT COUNT(*) AS n FROM visits{end}", shop.CATALOG).after == plain.after


@pytest.mark.parametrize(
    "text", ["; -- nothing", "SELECT 1; SELECT 2", "SELECT COUNT(*) FROM visits; DROP TABLE visits"]
)
def test_more_and_less_than_one_question_are_refused(text: str) -> None:
    with pytest.raises(QueryRefused):
        parse(text, shop.CATALOG)


@pytest.mark.parametrize(
    "sql", ["SELECT AVG(#) FROM t", "SELECT COUNT(*) FROM t WHERE u + # > 3", "SELECT #, COUNT(*) FROM t"]
)
def test_a_column_that_is_a_word_of_sql_is_to_be_quoted(sql: str) -> None:
    catalog = Catalog({"t": Table("t", (Column("u", "BIGINT"), Column("alter", "INTEGER")), "t", "unit", "u")})
    with pytest.raises(QueryRefused, match='there is a column "alter", which is also a word of SQL'):
        parse(sql.replace("#", "alter"), catalog)
    grouped = " GROUP BY 1" if sql.endswith("COUNT(*) FROM t") else ""
    parse(sql.replace("#", '"alter"') + grouped, catalog)
