"""Policies in files: TOML or YAML, checked field by field, with errors that say where and what was meant.

Imported when a policy is read: pydantic and YAML are not loaded before.
"""

from __future__ import annotations

import datetime as dt
import os
import tomllib
from pathlib import Path
from typing import Any

import pydantic

from discreet.engines.names import closest
from discreet.errors import InvalidArgument, PolicyError
from discreet.query.policy import ColumnPolicy, Policy, TablePolicy, placed

__all__ = ["read_policy"]

Value = bool | int | float | dt.datetime | dt.date | str
_STRICT = pydantic.ConfigDict(extra="forbid", frozen=True, strict=True)


class _Column(pydantic.BaseModel):
    model_config = _STRICT
    type: str | None = None
    bounds: list[Value] | None = None
    keys: list[Value] | None = None
    keys_from: str | None = None
    hidden: bool = False


class _Table(pydantic.BaseModel):
    model_config = _STRICT
    source: str
    table: str | None = None
    unit: str | None = None
    public: bool = False
    rows_per_unit: int | None = None
    max_groups: int | None = None
    max_rows: int | None = None
    columns: dict[str, _Column] = pydantic.Field(default_factory=dict)


class _Budget(pydantic.BaseModel):
    model_config = _STRICT
    epsilon: float | None = None
    delta: float = 0.0
    rho: float | None = None
    mu: float | None = None


class _File(pydantic.BaseModel):
    model_config = _STRICT
    name: str
    ledger: str | None = None
    budget: _Budget | None = None
    tables: dict[str, _Table]


def read_policy(path: Path) -> Policy:
    """The policy in a file; everything in it is checked that can be checked without the data."""
    shown = str(path)
    try:
        document = _File.model_validate(_document(path))
    except pydantic.ValidationError as error:
        problem = error.errors(include_url=False)[0]
    else:
        return _policy(shown, document, folder=path.absolute().parent)
    raise _explained(shown, problem)


def _policy(shown: str, document: _File, *, folder: Path) -> Policy:
    from discreet.accounting import Budget

    tables: dict[str, TablePolicy] = {}
    where = shown
    try:
        for name, table in document.tables.items():
            columns: dict[str, ColumnPolicy] = {}
            for column, facts in table.columns.items():
                where = f"{shown}: tables.{name}.columns.{column}"
                columns[column] = ColumnPolicy(**_given(facts))
            where = f"{shown}: tables.{name}"
            given = {**_given(table), "source": _placed(table.source, folder), "columns": columns}
            if given["source"].lower().endswith((".duckdb", ".ddb", ".db")):
                given.setdefault("table", name)
            tables[name] = TablePolicy(**given)
        where = f"{shown}: budget"
        budget = None if document.budget is None else Budget(**_given(document.budget))
        where = f"{shown}: "
        ledger = None if document.ledger is None else Path(_placed(document.ledger, folder))
        return Policy(name=document.name, tables=tables, budget=budget, ledger=ledger, origin=shown)
    except InvalidArgument as error:
        problem = placed(where, error)
    raise problem


def _given(model: pydantic.BaseModel) -> dict[str, Any]:
    return {name: getattr(model, name) for name in model.model_fields_set}


def _placed(path: str, folder: Path) -> str:
    return path if "://" in path else os.path.join(folder, Path(path).expanduser())  # noqa: PTH118 - keeps patterns as they are


def _document(path: Path) -> Any:
    suffix = path.suffix.lower()
    if suffix not in (".toml", ".yaml", ".yml"):
        raise PolicyError(str(path), "a policy is a TOML or YAML file", "Name it policy.toml or policy.yaml.")
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeError) as error:
        missing = isinstance(error, FileNotFoundError)
        what = "the file does not exist" if missing else "the file cannot be read as text in UTF-8"
    else:
        return _parsed(path, text)
    raise PolicyError(str(path), what, "Pass the path of a policy; `discreet init` writes one.")


def _parsed(path: Path, text: str) -> Any:
    try:
        return tomllib.loads(text) if path.suffix.lower() == ".toml" else _yaml(text)
    except tomllib.TOMLDecodeError as error:
        what = f"this is not TOML: {error}"
    except _BadYaml as error:
        what = f"this is not YAML that can be used: {error}"
    raise PolicyError(str(path), what, "Correct the line.")


class _BadYaml(Exception):
    """The text is no YAML, or says something twice."""


def _yaml(text: str) -> Any:
    """The document, in YAML's safe subset; a key that is given twice is refused, since one of them would be lost."""
    import yaml

    class Loader(yaml.SafeLoader):
        """Safe, and strict about keys."""

    def mapping(loader: yaml.SafeLoader, node: yaml.MappingNode) -> dict[Any, Any]:
        loader.flatten_mapping(node)
        found: dict[Any, Any] = {}
        for key_node, value_node in node.value:
            key = loader.construct_object(key_node, deep=True)
            line = f"line {key_node.start_mark.line + 1}"
            if not isinstance(key, str):
                raise _BadYaml(f"the name {key!r} in {line} is not text; write it in quotes")
            if key in found:
                raise _BadYaml(f"'{key}' in {line} is there twice")
            found[key] = loader.construct_object(value_node, deep=True)
        return found

    Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, mapping)
    try:
        return yaml.load(text, Loader=Loader)  # noqa: S506 - a subclass of SafeLoader
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f" in line {mark.line + 1}" if mark is not None else ""
        what = f"{getattr(error, 'problem', None) or 'it cannot be parsed'}{place}"
    raise _BadYaml(what)


_WORDS = {
    "string_type": "a text in quotes",
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list in brackets",
    "dict_type": "a table of fields",
    "model_type": "a table of fields",
}


def _explained(shown: str, problem: Any) -> PolicyError:
    """What pydantic found, as one sentence about one field."""
    path = [str(part) for part in problem["loc"] if not (isinstance(part, str) and part in _UNION)]
    place = ".".join(path)
    if problem["type"] == "extra_forbidden":
        where = f"{shown}: {'.'.join(path[:-1])}" if path[:-1] else shown
        return PolicyError(where, f"unknown field '{path[-1]}'", closest(path[-1], _fields(path[:-1])))
    if problem["type"] == "missing":
        where = f"{shown}: {'.'.join(path[:-1])}" if path[:-1] else shown
        return PolicyError(where, f"the field '{path[-1]}' is missing", "Add it; `discreet init` shows a policy.")
    wanted = _WORDS.get(problem["type"], "a number, a text, true, false or a date")
    where = f"{shown}: {place}" if place else shown
    return PolicyError(where, f"{problem['input']!r:.60} is of the wrong type", f"Write {wanted}.")


_UNION = {"bool", "int", "float", "datetime", "date", "str"}


def _fields(path: list[str]) -> list[str]:
    """The fields that can stand at a place of the file."""
    model: type[pydantic.BaseModel] = _File
    if path[:1] == ["tables"]:
        model = _Column if "columns" in path[2:] else _Table
    elif path[:1] == ["budget"]:
        model = _Budget
    return list(model.model_fields)
