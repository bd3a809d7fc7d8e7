"""Short ways to write windows, spelled out in the syntax tree before anything is planned.

- `OVER w` and `OVER (w ROWS 2 PRECEDING)` with `WINDOW w AS (...)` have the parts of w where they stand.
- `LAG(x, k, d)` and `LEAD(x, k, d)` are x of that row, and d where there is none, which is where LAG(1, k) is NULL.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

if TYPE_CHECKING:
    from discreet.query.sql.text import Source

__all__ = ["spelled_out"]

_PARTS = ("partition_by", "order", "spec")


def spelled_out(source: Source, tree: exp.Query) -> exp.Query:
    """The same question in which no window has a name and no LAG or LEAD a default."""
    if tree.find(exp.Window) is None:
        return tree
    unused: list[exp.Window] = []
    for select in list(tree.find_all(exp.Select)):
        windows = [*(select.args.get("windows") or []), *_own_windows(select)]
        used = {window.args["alias"].name.lower() for window in windows if window.args.get("alias") is not None}
        known = _known(source, select)
        for window in _own_windows(select):
            _fill(source, window, known)
        unused += [window for name, window in known.items() if name not in used]
    for window in unused:
        raise source.refusal(f"nothing uses the window {window.name}", advice="leave it out", at=window)
    for window in list(tree.find_all(exp.Window)):
        _without_default(window)
    return tree


def _known(source: Source, select: exp.Select) -> dict[str, exp.Window]:
    """The windows of the WINDOW clause by name, each with its parts written out; the clause is taken away."""
    known: dict[str, exp.Window] = {}
    for named in select.args.get("windows") or []:
        name = named.name.lower()
        if name in known:
            raise source.refusal(f"there are two windows named {named.name}", advice="rename one of them", at=named)
        _fill(source, named, known)
        known[name] = named
    select.set("windows", None)
    return known


def _own_windows(node: exp.Expr) -> list[exp.Window]:
    """The windows in a SELECT, those of its subqueries apart: these do not see its names."""
    found: list[exp.Window] = []
    for part in node.iter_expressions():
        if isinstance(part, exp.Query) and not isinstance(part, exp.Subquery):
            continue
        found += [part] if isinstance(part, exp.Window) else []
        found += _own_windows(part)
    return found


def _fill(source: Source, window: exp.Window, known: dict[str, exp.Window]) -> None:
    """Take over the parts of the window that this one names."""
    alias = window.args.get("alias")
    if alias is None:
        return
    meant = known.get(alias.name.lower())
    if meant is None:
        names = f"; there is {', '.join(one.name for one in known.values())}" if known else ""
        raise source.refusal(
            f"there is no window named {alias.name}{names}",
            advice=f"write WINDOW {alias.name} AS (PARTITION BY ... ORDER BY ...) at the end of this SELECT",
            at=alias,
        )
    added = {part for part in _PARTS if window.args.get(part)}
    taken = {part: meant.args[part] for part in _PARTS if meant.args.get(part)}
    if added & set(taken) or (added and "spec" in taken):  # the same rules as in the engine
        raise source.refusal(
            f"the window {alias.name} has this part already", advice="write the whole window out", at=window
        )
    for part, value in taken.items():
        window.set(part, [one.copy() for one in value] if isinstance(value, list) else value.copy())
    window.set("alias", None)


def _without_default(window: exp.Window) -> None:
    function = window.this
    if not isinstance(function, exp.Lag | exp.Lead) or function.args.get("default") is None:
        return
    default = function.args["default"]
    function.set("default", None)
    there = window.copy()
    there.this.set("this", exp.Literal.number(1))
    window.replace(exp.Case(ifs=[exp.If(this=there.is_(exp.null()), true=default)], default=window.copy()))
