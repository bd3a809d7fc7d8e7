"""A policy meets the data: schemas are read, and every declaration is checked against them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from discreet.engines.frames import files_behind
from discreet.engines.names import closest, quoted
from discreet.engines.paths import files_of, identity, in_files
from discreet.errors import InvalidArgument, PolicyError, SourceError
from discreet.query.catalog import Catalog, Column, Table
from discreet.query.declared import bounds_of, family, identifies, keys_of, never_identifies

if TYPE_CHECKING:
    from collections.abc import Mapping

    from discreet.engines import Engine
    from discreet.query.policy import ColumnPolicy, Policy, TablePolicy

__all__ = ["resolve"]


def resolve(policy: Policy, engine: Engine) -> Catalog:
    """The catalog of a policy: registers all sources, then seals the engine, then reads the keys in public tables."""
    _apart(policy)
    schemas: dict[str, tuple[str, dict[str, tuple[str, str]]]] = {}
    for name, table in policy.tables.items():
        relation = _registered(policy, name, table, engine=engine)
        schemas[name] = relation, {column.lower(): (column, kind) for column, kind in engine.schema(relation)}
    for name, table in policy.tables.items():
        stored = engine.stored_types(name)
        _check_columns(policy, name, schemas)
        _check(f"{policy.origin}: tables.{name}", table, schema=schemas[name][1], stored=stored)
    catalog: dict[str, Table] = {}
    for name, table in policy.tables.items():
        relation, schema = schemas[name]
        where = f"{policy.origin}: tables.{name}"
        facts = {column.lower(): facts for column, facts in table.columns.items()}
        columns = []
        for key, (column, kind) in schema.items():
            declared = facts.get(key)
            keys = None
            if declared is not None and declared.keys_from is not None:
                place = f"{where}.columns.{column}.keys_from"
                keys = _public_keys(place, declared.keys_from, kind, policy=policy, schemas=schemas, engine=engine)
            columns.append(_column(f"{where}.columns.{column}", column, kind, declared=declared, keys=keys))
            if declared is not None and declared.unique:
                _check_unique(f"{where}.columns.{column}.unique", column, kind, relation=relation, engine=engine)
        unit = schema[table.unit.lower()][0] if table.level == "unit" and table.unit is not None else None
        catalog[name.lower()] = Table(
            name=name,
            columns=tuple(columns),
            relation=relation,
            level=table.level,
            unit=unit,
            one_row=table.rows_per_unit == 1,
            notes=_left_out(name, table.source),
        )
    return Catalog(catalog)


def _left_out(name: str, source: Any) -> tuple[str, ...]:
    """Which rows of a source are in no answer."""
    if not in_files(source) or files_of(source).kind != "csv":
        return ()
    return (f"lines of {name} that have too few cells, or quotation marks in wrong places, are not counted",)


def _apart(policy: Policy) -> None:
    """No rows are public in one table and protected in another, and no rows have two units.

    A budget is about the unit of each table: rows that are also somebody else's would be paid for once and told twice.
    """
    protected: dict[object, str] = {}
    for name, table in policy.tables.items():
        for place in () if table.public else _places(table):
            other = policy.tables[protected.setdefault(place, name)].unit
            if str(other).lower() != str(table.unit).lower():
                raise PolicyError(
                    f"{policy.origin}: tables.{name}.unit",
                    f"the rows of this table are those of '{protected[place]}', whose unit is {other}",
                    "Declare them once, with the unit that is to be protected.",
                )
    for name, table in policy.tables.items():
        if table.public:
            both = next((protected[place] for place in _places(table) if place in protected), None)
            if both is not None:
                raise PolicyError(
                    f"{policy.origin}: tables.{name}.public",
                    f"the rows of this table are those of '{both}', which is not public",
                    "Declare them once.",
                )


def _places(table: TablePolicy) -> list[object]:
    """Where the rows of a table are: files, with the table of a database, or the object in memory."""
    if not in_files(table.source):
        return [id(table.source), *((identity(path), "") for path in files_behind(table.source))]
    try:
        paths = files_of(table.source).paths
    except SourceError:
        return []  # said in its own words when it is registered
    return [(identity(path), (table.table or "").lower().removeprefix("main.")) for path in paths]


def _registered(policy: Policy, name: str, table: TablePolicy, *, engine: Engine) -> str:
    types = {column: facts.type for column, facts in table.columns.items() if facts.type is not None}
    hidden = [column for column, facts in table.columns.items() if facts.hidden]
    if table.unit is not None and table.unit.lower() in map(str.lower, hidden):
        where = f"{policy.origin}: tables.{name}.columns.{table.unit}"
        raise PolicyError(where, "the unit cannot be hidden", "No answer ever shows its values; leave out hidden.")
    try:
        return engine.register(
            name, table.source, table=table.table, types=types, leave_out=hidden, encoding=table.encoding
        )
    except SourceError as error:
        problem = error
    if policy.origin.lower().endswith((".toml", ".yaml", ".yml")):  # which of its tables is meant
        raise SourceError(f"{policy.origin}: tables.{name}: {problem.source}", problem.why, problem.advice)
    raise problem


def _check_columns(policy: Policy, name: str, schemas: Mapping[str, tuple[str, Mapping[str, tuple[str, str]]]]) -> None:
    """What is declared is about columns that exist."""
    _, schema = schemas[name]
    for column, facts in policy.tables[name].columns.items():
        if column.lower() in schema or facts.hidden:
            continue
        others = [other for other, (_, known) in schemas.items() if column.lower() in known]
        advice = closest(column, [shown for shown, _ in schema.values()])
        if others:
            advice = f"The table '{others[0]}' has it: declare it there, in Python as '{others[0]}.{column}'."
        raise PolicyError(
            f"{policy.origin}: tables.{name}.columns", f"the table '{name}' has no column '{column}'", advice
        )


def _check(where: str, table: TablePolicy, *, schema: Mapping[str, tuple[str, str]], stored: Mapping[str, str]) -> None:
    """The unit is a column, and something that identifies."""
    names = [column for column, _ in schema.values()]
    if table.level == "row" and "row" in schema:
        raise PolicyError(
            f"{where}.unit",
            "'row' means that every row is a unit of its own, and the table has a column of this name too",
            "Rename the column.",
        )
    if table.level != "unit" or table.unit is None:
        return
    if table.unit.lower() not in schema:
        advice = f"{closest(table.unit, names)} A table that is about nobody is public: public = true in a policy, "
        advice += "public={name: source} in Python."
        raise PolicyError(f"{where}.unit", f"the table has no column '{table.unit}'", advice)
    unit, kind = schema[table.unit.lower()]
    told = stored[table.unit.lower()]
    if never_identifies(kind) or never_identifies(told):
        declared = f"is of type {kind}" if never_identifies(kind) else f"is declared as {kind} and stored as {told}"
        raise PolicyError(
            f"{where}.unit",
            f"the column '{unit}' {declared}, which does not identify anybody",
            "Name the column that says whose row it is: one of whole numbers, texts or UUIDs. If every row is about "
            "another person, the unit is 'row'.",
        )
    if not identifies(kind):
        raise PolicyError(
            f"{where}.unit",
            f"the column '{unit}' is of type {kind}, which does not identify anybody",
            "A unit is a column of whole numbers, texts or UUIDs. If it is one that is stored in another way, declare "
            f'its type: type = "BIGINT" in a policy, columns={{"{unit}": {{"type": "BIGINT"}}}} in Python.',
        )


def _column(
    where: str, column: str, kind: str, *, declared: ColumnPolicy | None, keys: tuple[Any, ...] | None
) -> Column:
    if declared is None:
        return Column(column, kind)
    try:
        bounds = None if declared.bounds is None else bounds_of(declared.bounds, kind)
        keys = keys if declared.keys is None else keys_of(declared.keys, kind)
    except InvalidArgument as error:
        problem = error
    else:
        return Column(column, kind, bounds=bounds, keys=keys, unique=declared.unique)
    raise PolicyError(
        f"{where}.{problem.argument}",
        f"{problem.value!r} is not allowed",
        f"{problem.advice[:1].upper()}{problem.advice[1:]}.",
    )


def _check_unique(where: str, column: str, kind: str, *, relation: str, engine: Engine) -> None:
    """Looks through a column of a public table, and refuses one in which a value is there twice."""
    if family(kind) not in ("integer", "text", "date", "boolean", "uuid"):
        raise PolicyError(
            where, f"a column of type {kind} is compared in more than one way", "Declare it as BIGINT, VARCHAR or DATE."
        )
    cell = quoted(column)
    with engine.session() as session:
        found = session.numpy(f"SELECT COUNT({cell}) AS n, COUNT(DISTINCT {cell}) AS d FROM {relation}")
    if found["n"][0] != found["d"][0]:
        raise PolicyError(where, "a value is there more than once", "Leave out unique, or store every value once.")


def _public_keys(
    where: str,
    source: str,
    kind: str,
    *,
    policy: Policy,
    schemas: Mapping[str, tuple[str, Mapping[str, tuple[str, str]]]],
    engine: Engine,
) -> tuple[Any, ...]:
    """The distinct values of a column of a public table, in order."""
    table, _, column = source.partition(".")
    names = {name.lower(): name for name in policy.tables}
    if table.lower() not in names:
        raise PolicyError(where, f"there is no table '{table}'", closest(table, list(policy.tables)))
    name = names[table.lower()]
    if not policy.tables[name].public:
        raise PolicyError(
            where, f"the table '{name}' is not public", "Keys that are read from rows must come from a public table."
        )
    relation, schema = schemas[name]
    if column.lower() not in schema:
        shown = [shown for shown, _ in schema.values()]
        raise PolicyError(where, f"the table '{name}' has no column '{column}'", closest(column, shown))
    column, other = schema[column.lower()]
    if family(other) != family(kind):
        raise PolicyError(
            where, f"'{name}.{column}' is of type {other} and the column of type {kind}", "Declare one type."
        )
    cell = quoted(column)
    with engine.session() as session:
        rows = session.table(f"SELECT DISTINCT {cell} AS k FROM {relation} WHERE {cell} IS NOT NULL ORDER BY k")
    try:
        return keys_of([int(v) if family(kind) == "integer" else v for v in rows["k"].to_pylist()], kind)
    except InvalidArgument as error:
        problem = PolicyError(where, f"the values of '{name}.{column}' cannot be keys", f"There: {error.advice}.")
    raise problem
