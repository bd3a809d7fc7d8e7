"""A table of values that make careless SQL raise, and expressions over it."""

from __future__ import annotations

import duckdb

from discreet.query.catalog import Catalog, Column, Table

TYPES = {
    "u": "BIGINT",
    "i": "INTEGER",
    "b": "BIGINT",
    "h": "HUGEINT",
    "ub": "UBIGINT",
    "t": "TINYINT",
    "d": "DOUBLE",
    "f": "FLOAT",
    "p": "DECIMAL(18,4)",
    "w": "DECIMAL(38,10)",
    "s": "VARCHAR",
    "z": "VARCHAR",
    "o": "BOOLEAN",
    "y": "DATE",
    "m": "TIMESTAMP",
    "q": "TIMESTAMP WITH TIME ZONE",
}
VALUES = {
    "u": ["17", "18", "NULL"],
    "i": ["0", "1", "-1", "2147483647", "-2147483648", "NULL"],
    "b": ["0", "-1", "9223372036854775807", "-9223372036854775808", "NULL"],
    "h": ["0", "170141183460469231731687303715884105727", "-170141183460469231731687303715884105727",
          "'-170141183460469231731687303715884105728'", "-85070591730234615865843651857942052864", "NULL"],
    "ub": ["0", "18446744073709551615", "NULL"],
    "t": ["0", "127", "-128", "NULL"],
    "d": ["0", "-0.0", "1.5", "-3", "'nan'", "'inf'", "'-inf'", "1.7e308", "-1.7e308", "5e-324", "1e15", "NULL"],
    "f": ["0", "'nan'", "'inf'", "3.4e38", "-1", "NULL"],
    "p": ["0", "99999999999999.9999", "-99999999999999.9999", "NULL"],
    "w": ["0", "9999999999999999999999999999.9999999999", "-1", "NULL"],
    "s": ["''", "'a'", "'12'", "'-170141183460469231731687303715884105728'",
          "'2020-01-31'", "'1e400'", "'é\U0001f600%_\\'", "repeat('xyz', 5000)", "NULL"],
    "z": ["'(('", "'%'", "'nan'", "'infinity'", "chr(0)", "NULL"],
    "o": ["TRUE", "FALSE", "NULL"],
    "y": ["DATE '2020-02-29'", "'infinity'", "'-infinity'", "'5877642-06-25 (BC)'", "'5881580-07-10'",
          "DATE '0001-01-01'", "DATE '9999-12-31'", "'0044-03-15 (BC)'", "NULL"],
    "m": ["TIMESTAMP '2020-02-29 12:34:56.789'", "'infinity'", "'-infinity'", "'290309-12-22 (BC) 00:00:00'",
          "'294247-01-10 04:00:54.775806'", "TIMESTAMP '0001-01-01'", "NULL"],
    "q": ["TIMESTAMPTZ '2020-02-29 12:34:56+02'", "'infinity'", "'-infinity'", "'294247-01-10 04:00:54+00'", "NULL"],
}  # fmt: skip
CATALOG = Catalog({"n": Table("n", tuple(Column(name, kind) for name, kind in TYPES.items()), "nasty", "unit", "u")})


def connection() -> duckdb.DuckDBPyConnection:
    """A DuckDB that holds the table: every value of every column beside many of the others."""
    engine = duckdb.connect()
    engine.execute("SET TimeZone = 'UTC'")
    columns = ", ".join(f"{name} {kind}" for name, kind in TYPES.items())
    engine.execute(f"CREATE TABLE nasty ({columns})")
    longest = max(map(len, VALUES.values()))
    rows = []
    for shift in range(longest):
        for i in range(longest):
            cells = [values[(i + shift * place) % len(values)] for place, values in enumerate(VALUES.values())]
            cells[0] = VALUES["u"][(i + shift) % 2]
            rows.append("(" + ", ".join(cells) + ")")
    for row in rows:
        engine.execute(f"INSERT INTO nasty VALUES {row}")
    return engine


NUMBERS = """
i|b|h|ub|t|d|f|p|w|
i + b|b - i|b * b|b * b * b|h + 1|h * h|-b|-h|-i|abs(b)|abs(h)|abs(i)|abs(t)|abs(d)|sign(d)|sign(b)|i / 0|i / i|d / d|
b // i|b // -1|b // 0|h // -1|b % i|b % -1|i % 0|d % 0|d % 2|ub // i|h // b|mod(b, i)|ub + 1|ub * ub|ub - h|t + t|
t * t * t|
p + p|p * p|p / p|w * w|w + 1|w / 0|-w|f * f|f + d|d * d|d + d|d - d|floor(d)|ceil(d)|round(d)|round(d, 2)|
round(d, -3)|
round(i, 2)|round(i, -2)|round(b)|trunc(d)|floor(p)|floor(i / 10) * 10|sqrt(d)|sqrt(b)|ln(d)|ln(i)|log(d)|log2(d)|
log10(b)|log(3, d)|exp(d)|exp(b)|power(d, d)|power(b, 3)|d ** 2|i ^ 2|pow(0, d)|greatest(d, 0)|greatest(i, b, 5)|
least(d, i, p)|least(b, h)|coalesce(d, i, 0)|coalesce(i, b)|nullif(i, 0)|nullif(d, 0)|ifnull(p, 1.5)|
CASE WHEN d > 0 THEN i ELSE b END|CASE WHEN o THEN d WHEN i > 3 THEN i END|CASE i WHEN 1 THEN 2 WHEN 0 THEN 2.5 END|
if(o, i, h)|CAST(s AS INT)|CAST(s AS DOUBLE)|CAST(d AS INT)|CAST(d AS BIGINT)|CAST(h AS BIGINT)|CAST(b AS TINYINT)|
CAST(d AS DECIMAL(10, 2))|CAST(s AS DECIMAL(30, 5))|CAST(p AS INTEGER)|CAST(o AS INT)|TRY_CAST(z AS DOUBLE)|
s::hugeint|
z::float|ub::bigint|w::double|length(s)|length(z)|strpos(s, 'x')|instr(s, z)|year(y)|month(y)|day(y)|quarter(m)|
week(y)|
dayofweek(m)|isodow(y)|dayofyear(m)|hour(m)|minute(m)|second(m)|hour(y)|epoch(m)|epoch(y)|extract(year FROM m)|
extract(dow FROM y)|extract(decade FROM y)|date_part('month', m)|date_part('century', y)|date_diff('day', y, m)|
date_diff('month', y, DATE '2020-01-01')|date_diff('microsecond', m, TIMESTAMP '2020-01-01')|date_diff('year', m, m)|
date_diff('second', y, m)|y - DATE '2020-01-01'|DATE '2020-01-01' - y|weekday(y)|isoyear(y)|
width_bucket(d, -5, 5.5, 3)|width_bucket(b, 0, 9, 1000000000)|
width_bucket(h, -1e300, 1e300, 7)|epoch(time_bucket(INTERVAL 9000 YEAR, y))|
epoch(time_bucket(INTERVAL 1 MICROSECOND, m))|
epoch(time_bucket(INTERVAL 13 MINUTE, y))|hour(time_bucket(INTERVAL '5 weeks', m))|
year(strptime(s, '%Y-%m-%d'))|epoch(try_strptime(z, '%d.%m.%y %H:%M:%S.%f'))|epoch(strptime(z, '%b%p'))|
CASE WHEN u = 17 AND d > 1 THEN CAST(s AS INT) END|(i + b) * (b - i) // (i % 3)|exp(exp(d))|ln(ln(d))|
sqrt(sqrt(d) - 1)|
h % -1|h % i|h % b|s::hugeint % i|mod(h, -1)|s::hugeint % -1|b * b * -2|(-2) * (b * b)|b * 18446744073709551616|h * 1|
h * -1|h * i|h * 2|s::hugeint * i|s::hugeint * 1|((0 - b * b) - b * b) % -1|h - 0|h + 0|-(s::hugeint)|abs(s::hugeint)|
(b * b) * i|(b * b * 2) - 1|b * b + b * b|ub * b * -1|i * h * 0|h // 1|h // -1|s::hugeint // -1|round(h)|round(h, -3)|
t * 1329227995784915872903807060280344576|
sin(d)|cos(b)|tan(d)|tan(pi() / 2)|asin(d)|acos(f)|acos(d / 1.5)|atan(d)|atan2(d, f)|atan2(b, i)|radians(d)|degrees(d)|
degrees(b)|radians(h)|cbrt(d)|cbrt(h)|pi()|asin(sqrt(sin(radians(d) / 2) ** 2 + cos(f) * cos(d)))|
date_sub('year', y, m)|datesub('month', y, DATE '2020-02-29')|date_sub('microsecond', m, TIMESTAMP '9999-12-31')|
date_sub('week', m, m)|date_sub('day', q, y)|date_sub('century', y, y)|extract(year FROM age(y, m))|
date_part('year', age(m, DATE '2020-02-29'))|year(age(y, y))|year(make_date(i, t, b))|ascii(s)|unicode(z)|ord(s)
"""
TEXTS = """
s|z|lower(s)|upper(z)|trim(s)|ltrim(s, 'a')|rtrim(s)|substr(s, 2)|substr(s, -3, 2)|substring(s, 0, 5)|left(s, 3)|
left(s, -2)|
right(s, 2)|right(z, -1)|s || z|s || i|concat(s, z, d, y)|replace(s, 'x', 'yyyy')|replace(s, '', 'b')|
split_part(s, '-', 1)|
split_part(s, '', -1)|strftime(y, '%Y-%m')|strftime(m, '%H:%M %j %a %b %%')|CAST(d AS VARCHAR)|CAST(y AS VARCHAR)|
CAST(h AS VARCHAR)|CAST(m AS VARCHAR)|CAST(o AS VARCHAR)|regexp_extract(s, '([0-9]+)-([0-9]+)', 2)|
regexp_extract(z, '.*')|reverse(s)|lpad(s, 7, 'ab')|rpad(z, 3, '.')|lpad(s, 0, 'x')|
regexp_replace(s, '[a-z]', '*', 'gi')|regexp_replace(z, '', 'xy', 'g')|regexp_replace(s, '.')|
monthname(y)|dayname(m)|coalesce(s, z, '')|nullif(s, '')|CASE WHEN d > 3 THEN s ELSE 'no' END|
greatest(s, z)|least(s, 'b')|concat_ws('-', s, z, d)|concat_ws('', z)|repeat(s, 0)|repeat(z, 40)|
translate(s, 'xy', 'é')|translate(z, '', 'a')|strip_accents(s)|strip_accents(z)
"""
CONDITIONS = """
i > 3|b = h|d = i|p > d|ub < i|t <> b|w >= i|d <> d|i IS NULL|d IS NOT NULL|o|NOT o|o IS TRUE|o IS NOT FALSE|s = z|
s < 'm'|
y > '2020-01-01'|m >= DATE '2020-01-01'|y = m|m < '2020-01-01 10:00:00'|i BETWEEN t AND b|d NOT BETWEEN 0 AND 1|
i IN (1, 2, 3)|d IN (1.5, 2)|s IN ('a', 'b')|i NOT IN (1, NULL)|s LIKE '%a%'|s NOT LIKE 'a_'|z ILIKE '%N%'|
s LIKE 'a!%' ESCAPE '!'|s SIMILAR TO '[a-z]+'|s ~ '^[0-9]+$'|regexp_matches(s, '(a|b)*c')|regexp_full_match(z, '.*')|
starts_with(s, z)|ends_with(s, 'a')|contains(s, z)|prefix(s, 'a')|suffix(s, 'z')|isnan(d)|isinf(d)|isfinite(d)|
i IS DISTINCT FROM b|s IS NOT DISTINCT FROM z|o AND i > 0|o OR NULL|(i > 0) = o|y IN ('2020-02-29', '2021-01-01')|
CASE WHEN o THEN i > 3 END|y BETWEEN '2020-01-01' AND '2020-12-31'
"""
TIMES = """
y|m|q|date_trunc('day', q)|date_trunc('month', y)|date_trunc('week', m)|date_trunc('century', y)|date_trunc('hour', m)|
date_trunc('microsecond', y)|
date_trunc('decade', m)|y + INTERVAL 1 DAY|y - INTERVAL 9999 YEAR|m + INTERVAL '3 months'|m - INTERVAL 5 SECOND|y + 3|
y - 700000|date_add(y, INTERVAL 3 DAY)|INTERVAL 1 HOUR + m|last_day(y)|last_day(m)|CAST(s AS DATE)|
CAST(z AS TIMESTAMP)|
CAST(y AS TIMESTAMP)|CAST(m AS DATE)|date(m)|coalesce(y, DATE '2020-01-01')|greatest(y, m)|least(y, '2020-01-01')|
CASE WHEN o THEN y ELSE m END|date_trunc('month', y + INTERVAL 1 DAY) - INTERVAL 1 MONTH|nullif(y, '2020-02-29')|
make_date(i, t, b)|make_date(2020, t, i)|make_date(b, 2, 29)|make_date(h, ub, 1)|
q AT TIME ZONE 'Europe/Berlin'|m AT TIME ZONE 'Pacific/Kiritimati'|y AT TIME ZONE 'America/New_York'|
timezone('etc/gmt+12', q)|CAST(z AS TIMESTAMP) AT TIME ZONE 'Africa/Monrovia' AT TIME ZONE 'Asia/Kathmandu'
"""


def listed(text: str) -> list[str]:
    """The expressions of a list that is separated by bars."""
    parts, depth, current = [], 0, ""
    for character in text.replace("||", "\x01"):
        depth += (character == "(") - (character == ")")
        if character == "|" and depth == 0:
            parts.append(current)
            current = ""
        else:
            current += character
    return [part.strip().replace("\x01", "||") for part in [*parts, current] if part.strip()]
