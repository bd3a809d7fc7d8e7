"""The aggregate functions: how they are written, and what each becomes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from discreet.query.sql.alternatives import instead_of

if TYPE_CHECKING:
    from discreet.query.sql.text import Source

__all__ = ["Call", "calls_of", "has_aggregate"]


@dataclass(frozen=True)
class Call:
    """One aggregate function as it was written.

    `function` is one of the names of `discreet.query.plan.Aggregate`, or "count_if". `probabilities` belong to
    quantiles; `listed` says that they were written as a list. `condition` is the FILTER clause.
    """

    function: str
    argument: exp.Expr | None
    node: exp.Expr
    condition: exp.Expr | None = None
    probabilities: tuple[float, ...] = ()
    listed: bool = False
    discrete: bool = False


PLAIN: dict[type, str] = {
    exp.Sum: "sum",
    exp.Avg: "avg",
    exp.Min: "min",
    exp.Max: "max",
    exp.Median: "quantile",
    exp.Variance: "variance",
    exp.VariancePop: "variance_pop",
    exp.Stddev: "stddev",
    exp.StddevSamp: "stddev",
    exp.StddevPop: "stddev_pop",
    exp.CountIf: "count_if",
    exp.ApproxDistinct: "count_distinct",
}
QUANTILES: dict[type, str] = {
    exp.PercentileCont: "expression",
    exp.PercentileDisc: "expression",
    exp.Quantile: "quantile",
    exp.ApproxQuantile: "quantile",
}
NAMED = {"mean": "avg", "quantile_cont": "quantile", "quantile_disc": "quantile", "quantile": "quantile"}
COUNTED = (exp.Count, exp.Filter, exp.WithinGroup)
KNOWN = (*PLAIN, *QUANTILES, *COUNTED)


def is_aggregate(node: exp.Expr) -> bool:
    """Whether the node is an aggregate function, supported or not (not a window)."""
    if isinstance(node, exp.Anonymous):
        return str(node.this).lower() in NAMED
    return isinstance(node, (*KNOWN, exp.AggFunc, exp.AnonymousAggFunc))


def has_aggregate(node: exp.Expr | None) -> bool:
    """Whether an aggregate stands somewhere in the expression, subqueries and windows apart."""
    if node is None or isinstance(node, exp.Query | exp.Subquery):
        return False
    if isinstance(node, exp.Window):
        function = node.this
        while isinstance(function, exp.IgnoreNulls | exp.RespectNulls | exp.Filter):
            function = function.this
        inside = [function.args.get("this"), *(node.args.get("partition_by") or []), node.args.get("order")]
        return any(has_aggregate(part) for part in inside if isinstance(part, exp.Expr))
    if is_aggregate(node):
        return True
    return any(has_aggregate(child) for child in node.iter_expressions())


def calls_of(source: Source, node: exp.Expr) -> Call:
    """The call that a node writes, or a refusal."""
    condition = None
    whole = node
    if isinstance(node, exp.Filter):
        condition = node.expression.this
        node = node.this
    if isinstance(node, exp.WithinGroup):
        return _within(source, node, condition, whole)
    advice = instead_of(_name(node))
    if advice is not None:
        called = source.called(node) or ""
        name = called.upper() if instead_of(called) == advice else _name(node)
        raise source.refusal(f"{name} is not supported", advice=advice, at=whole)
    extra = _unread(node)
    if extra:
        raise source.refusal(
            f"'{source.written(whole)}' has a part that is not supported here",
            advice="write the function with its argument alone, and conditions in FILTER (WHERE ...)",
            at=whole,
        )
    if isinstance(node, exp.Count):
        return _count(source, node, condition, whole)
    if isinstance(node.this, exp.Distinct):
        raise source.refusal(
            f"DISTINCT inside '{source.written(whole)}' is not supported",
            advice="only COUNT(DISTINCT ...) is; or remove duplicates per person in a subquery first",
            at=whole,
        )
    if isinstance(node, exp.Anonymous) and str(node.this).lower() in NAMED:
        return _anonymous(source, node, condition, whole)
    if type(node) in QUANTILES:
        levels = node.args.get(QUANTILES[type(node)])
        if levels is None:
            raise source.refusal(
                "the probability of this quantile is missing", advice="write QUANTILE_CONT(x, 0.5)", at=whole
            )
        discrete = isinstance(node, exp.PercentileDisc | exp.Quantile)
        return _quantile(source, node.this, levels, condition, whole, discrete=discrete)
    function = PLAIN.get(type(node))
    if function is None or node.this is None:
        raise source.refusal(
            f"the aggregate '{source.written(whole)}' is not supported",
            advice="use COUNT, SUM, AVG, VARIANCE, STDDEV, MIN, MAX, MEDIAN or QUANTILE_CONT(x, p)",
            at=whole,
        )
    levels = (0.5,) if isinstance(node, exp.Median) else ()
    return Call(function, node.this, whole, condition, levels)


def _name(node: exp.Expr) -> str:
    """The name of the function, in capitals."""
    if isinstance(node, exp.Anonymous | exp.AnonymousAggFunc):
        return str(node.this).upper()
    return node.sql_name() if isinstance(node, exp.Func) else ""


def _unread(node: exp.Expr) -> list[str]:
    """The arguments of the node that nobody here looks at: none may be there."""
    read = {"this", "expression", "quantile", "big_int"}
    if isinstance(node, exp.Count | exp.Anonymous):
        read.add("expressions")
    return [name for name, value in node.args.items() if value and name not in read]


def _count(source: Source, node: exp.Count, condition: exp.Expr | None, whole: exp.Expr) -> Call:
    if node.expressions:
        raise source.refusal("COUNT takes one argument", advice="write COUNT(*) or COUNT(x)", at=whole)
    argument = node.this
    if argument is None or isinstance(argument, exp.Star):
        if isinstance(argument, exp.Star) and any(argument.args.values()):
            raise source.refusal("COUNT(* ...) takes nothing else", advice="write COUNT(*)", at=whole)
        return Call("count", None, whole, condition)
    if isinstance(argument, exp.Distinct):
        if len(argument.expressions) != 1 or argument.args.get("on") is not None:
            raise source.refusal(
                "COUNT(DISTINCT ...) takes one expression", advice="join the columns into one text with ||", at=whole
            )
        return Call("count_distinct", argument.expressions[0], whole, condition)
    return Call("count", argument, whole, condition)


def _anonymous(source: Source, node: exp.Anonymous, condition: exp.Expr | None, whole: exp.Expr) -> Call:
    function = NAMED[str(node.this).lower()]
    wanted = 1 if function == "avg" else 2
    if len(node.expressions) != wanted or isinstance(node.expressions[0], exp.Distinct):
        raise source.refusal(
            f"'{source.written(whole)}' is not understood",
            advice="write AVG(x) or QUANTILE_CONT(x, 0.5)",
            at=whole,
        )
    if function == "avg":
        return Call("avg", node.expressions[0], whole, condition)
    discrete = str(node.this).lower() != "quantile_cont"
    argument, levels = node.expressions
    return _quantile(source, argument, levels, condition, whole, discrete=discrete)


def _within(source: Source, node: exp.WithinGroup, condition: exp.Expr | None, whole: exp.Expr) -> Call:
    ordered = node.expression.expressions if isinstance(node.expression, exp.Order) else []
    if type(node.this) not in (exp.PercentileCont, exp.PercentileDisc) or len(ordered) != 1 or node.this.expression:
        raise source.refusal(
            f"'{source.written(whole)}' is not supported",
            advice="write PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY x)",
            at=whole,
        )
    call = _quantile(
        source, ordered[0].this, node.this.this, condition, whole, discrete=isinstance(node.this, exp.PercentileDisc)
    )
    if ordered[0].args.get("desc"):
        return Call(
            call.function, call.argument, whole, condition, tuple(1 - p for p in call.probabilities), call.listed,
            call.discrete,
        )  # fmt: skip
    return call


def _quantile(
    source: Source,
    argument: exp.Expr,
    levels: exp.Expr,
    condition: exp.Expr | None,
    whole: exp.Expr,
    *,
    discrete: bool,
) -> Call:
    listed = isinstance(levels, exp.Array)
    nodes = levels.expressions if listed else [levels]
    probabilities = tuple(_probability(source, node) for node in nodes)
    if not 1 <= len(probabilities) <= 100:
        advice = "list fewer" if probabilities else "list at least one, as in [0.25, 0.5, 0.75]"
        raise source.refusal("a quantile needs between 1 and 100 probabilities", advice=advice, at=whole)
    return Call("quantile", argument, whole, condition, probabilities, listed, discrete)


def _probability(source: Source, node: Any) -> float:
    try:
        number = float(str(node.this)) if isinstance(node, exp.Literal) and not node.is_string else -1.0
    except ValueError:
        number = -1.0
    if not 0 <= number <= 1:
        raise source.refusal(
            "the probability of a quantile must be a number between 0 and 1",
            advice="write it out, as in QUANTILE_CONT(x, 0.9)",
            at=node,
        )
    return number
