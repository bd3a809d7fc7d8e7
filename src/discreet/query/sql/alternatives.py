"""What to write instead of functions that cannot be made private, or are not known here."""

from __future__ import annotations

__all__ = ["instead_of"]

_BUCKETS = "count buckets: SELECT width_bucket(x, 0, 100, 10) AS bucket, COUNT(*) ... GROUP BY bucket"
_ROWS = "it would show values of single rows: GROUP BY x with COUNT(*) shows which values many people share"
_FIRST = (
    "for the first row of each person, select from (SELECT * FROM visits QUALIFY ROW_NUMBER() OVER (PARTITION BY unit "
    "ORDER BY day) = 1)"
)
_ONE = (
    "it would show the value of one row: use MIN, MAX or MEDIAN of numbers and dates, or add x to GROUP BY; " + _FIRST
)
_BEST = (
    "ask for the groups and choose afterwards: SELECT x, MAX(y) AS best ... GROUP BY x ORDER BY best DESC LIMIT 1; "
    + _FIRST
)
_COMMON = "SELECT x, COUNT(*) AS n ... GROUP BY x ORDER BY n DESC LIMIT 1 finds the most frequent value"
_TRUTH = (
    "count with COUNT_IF(condition), and compare with COUNT(*); for each person, write MAX(CASE WHEN condition THEN 1 "
    "ELSE 0 END)"
)
_PRODUCT = "use EXP(SUM(LN(x))) for products, EXP(AVG(LN(x))) for geometric means"
_SPREAD = "describe the spread with STDDEV and QUANTILE_CONT(x, [0.05, 0.5, 0.95])"
_HASH = "group by the value itself; keys that are not public are chosen privately"
_FORMAT = "write strftime(t, '%Y-%m-%d'), or date_trunc('month', t)"
_LISTS = "lists are not supported: use columns with plain values"

_INSTEAD: dict[str, str] = {
    **dict.fromkeys(("histogram", "histogram_exact", "approx_histogram", "equi_width_bins", "bin"), _BUCKETS),
    **dict.fromkeys(
        ("string_agg", "listagg", "group_concat", "array_agg", "list", "array_concat_agg", "json_group_array"), _ROWS
    ),
    **dict.fromkeys(
        ("json_group_object", "map_from_entries", "array_unique_agg", "collect_list", "collect_set"), _ROWS
    ),
    **dict.fromkeys(("any_value", "first", "last", "arbitrary", "nth_value", "first_value", "last_value"), _ONE),
    **dict.fromkeys(
        ("arg_max", "arg_min", "argmax", "argmin", "max_by", "min_by", "arg_max_null", "arg_min_null"), _BEST
    ),
    **dict.fromkeys(
        ("grouping", "grouping_id"), "it goes with GROUP BY ROLLUP (a, b), CUBE or GROUPING SETS: GROUPING(a)"
    ),
    **dict.fromkeys(("mode", "approx_top_k", "top_k"), _COMMON),
    **dict.fromkeys(("bool_and", "bool_or", "every", "logical_and", "logical_or"), _TRUTH),
    **dict.fromkeys(("product", "geomean", "geometric_mean"), _PRODUCT),
    **dict.fromkeys(("skewness", "kurtosis", "kurtosis_pop", "mad", "sem"), _SPREAD),
    "entropy": "count every value with GROUP BY x, and compute it from that answer",
    **dict.fromkeys(("sumkahan", "fsum", "kahan_sum", "sum_no_overflow"), "write SUM(x): sums are exact here"),
    **dict.fromkeys(("favg",), "write AVG(x): sums are exact here"),
    **dict.fromkeys(("avg_if", "sum_if", "sumif", "avgif"), "write AVG(x) FILTER (WHERE condition)"),
    "average": "write AVG(x)",
    **dict.fromkeys(("isnull", "is_null"), "write x IS NULL, or COALESCE(x, 0)"),
    **dict.fromkeys(("format", "printf"), "write ROUND(x, 2), and the rest after the answer"),
    **dict.fromkeys(("decode", "switch"), "write CASE x WHEN 'a' THEN 1 ELSE 0 END"),
    "glob": "write x LIKE 'a%'",
    **dict.fromkeys(("std", "stdev", "stdevp"), "write STDDEV(x), or STDDEV_POP(x)"),
    **dict.fromkeys(("var", "varp"), "write VARIANCE(x), or VAR_POP(x)"),
    **dict.fromkeys(("percentile", "percentile_approx"), "write QUANTILE_CONT(x, 0.9)"),
    **dict.fromkeys(("nunique", "count_distinct", "countd"), "write COUNT(DISTINCT x)"),
    **dict.fromkeys(("weighted_avg", "wavg"), "write SUM(x * weight) / SUM(weight)"),
    **dict.fromkeys(("reservoir_quantile",), "write QUANTILE_CONT(x, 0.5)"),
    **dict.fromkeys(("md5", "hash", "sha1", "sha256", "md5_number"), _HASH),
    **dict.fromkeys(("unnest", "explode", "generate_series", "range", "list_value"), _LISTS),
    **dict.fromkeys(("to_char", "date_format", "format_date", "formatdatetime", "dateformat"), _FORMAT),
    **dict.fromkeys(
        ("age", "timestampdiff", "months_between"),
        "write date_sub('year', start, end) for complete years, or date_diff, which counts the turns of the year",
    ),
    **dict.fromkeys(("epoch_ms", "epoch_us", "epoch_ns", "unix_timestamp", "to_unixtime"), "write epoch(t): seconds"),
    **dict.fromkeys(
        ("to_timestamp", "to_date", "make_timestamp"),
        "write CAST(x AS DATE), strptime(x, '%Y-%m-%d') for texts",
    ),
}


def instead_of(function: str) -> str | None:
    """Advice to somebody who wrote this function, if there is any.

    >>> instead_of("HISTOGRAM")
    'count buckets: SELECT width_bucket(x, 0, 100, 10) AS bucket, COUNT(*) ... GROUP BY bucket'
    """
    return _INSTEAD.get(function.lower())
