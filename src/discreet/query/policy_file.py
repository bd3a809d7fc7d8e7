"""Policies in files: TOML or YAML, checked field by field, with errors that say where and what was meant.

Imported when a policy is read: a reader of TOML or YAML is not loaded before.
"""

from __future__ import annotations

import datetime as dt
import os
import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.errors import InvalidArgument, PolicyError
from discreet.ledger.names import name as checked_name
from discreet.ledger.period import period_of
from discreet.query.document import checked_document
from discreet.query.policy import ColumnPolicy, Policy, TablePolicy, checked_share, placed

if TYPE_CHECKING:
    from datetime import timedelta

    from discreet.accounting import Budget

__all__ = ["read_policy"]

_DAY = re.compile(r"\d{4}-\d{1,2}-\d{1,2}")
_IS_NO_DATE = "is no date; write dates such as 2024-12-31"


def read_policy(path: Path) -> Policy:
    """The policy in a file; everything in it is checked that can be checked without the data."""
    shown = str(path)
    return _policy(shown, checked_document(shown, _document(path)), folder=path.absolute().parent)


def _policy(shown: str, document: dict[str, Any], *, folder: Path) -> Policy:
    tables: dict[str, TablePolicy] = {}
    where = shown
    try:
        for name, table in document["tables"].items():
            columns: dict[str, ColumnPolicy] = {}
            for column, facts in table.get("columns", {}).items():
                where = f"{shown}: tables.{name}.columns.{column}"
                columns[column] = ColumnPolicy(**facts)
            where = f"{shown}: tables.{name}"
            source = table["source"]
            placed_in = (
                [_placed(one, folder) for one in source] if isinstance(source, list) else _placed(source, folder)
            )
            given = {**table, "source": placed_in, "columns": columns}
            if isinstance(placed_in, str) and placed_in.lower().endswith((".duckdb", ".ddb", ".db")):
                given.setdefault("table", name)
            tables[name] = TablePolicy(**given)
        where = f"{shown}: budget"
        stated = dict(document.get("budget") or {})
        share = stated.pop("bounds_share", None)
        share = None if share is None else checked_share(share)
        unstated = document.get("budget") is None or (not stated and share is not None)
        budget, period = (None, None) if unstated else _grant(stated)
        analysts: dict[str, Budget] = {}
        periods: dict[str, timedelta] = {}
        for name, limit in (document.get("analysts") or {}).items():
            where = f"{shown}: analysts.{name}"
            checked_name("name", name)
            analysts[name], every = _grant(limit)
            periods |= {} if every is None else {name: every}
        where = f"{shown}: "
        ledger, key = (_file(document.get(field), folder) for field in ("ledger", "ledger_key"))
        return Policy(
            name=document["name"],
            tables=tables,
            budget=budget,
            ledger=ledger,
            origin=shown,
            analysts=analysts,
            period=period,
            periods=periods,
            shared=document.get("shared", False),
            ledger_key=key,
            ledger_origin=document.get("ledger_origin"),
            bounds_share=share,
        )
    except InvalidArgument as error:
        problem = placed(where, error)
    raise problem


def _grant(stated: dict[str, Any]) -> tuple[Budget, timedelta | None]:
    """A budget, and how often it begins again."""
    from discreet.accounting import Budget

    amounts = {field: value for field, value in stated.items() if field != "period"}
    period = stated.get("period")
    return Budget(**amounts), None if period is None else period_of(period)


def _file(path: str | None, folder: Path) -> Path | None:
    return None if path is None else Path(_placed(path, folder))


def _placed(path: str, folder: Path) -> str:
    return path if "://" in path else os.path.join(folder, Path(path).expanduser())  # noqa: PTH118 - keeps patterns as they are


def _document(path: Path) -> Any:
    suffix = path.suffix.lower()
    if suffix not in (".toml", ".yaml", ".yml"):
        raise PolicyError(str(path), "a policy is a TOML or YAML file", "Name it policy.toml or policy.yaml.")
    advice = "Pass the path of a policy; `discreet init` writes one."
    try:
        text = path.read_text(encoding="utf-8-sig")  # some editors begin a file with a mark
    except FileNotFoundError:
        what = "the file does not exist"
    except PermissionError:
        what, advice = "this user may not read the file", "Ask its owner for the right to read it."
    except UnicodeError:
        what, advice = "the file is not text in UTF-8", "Save it in that encoding."
    except OSError as error:
        what = f"the file cannot be read ({error.strerror})"
    else:
        return _parsed(path, text)
    raise PolicyError(str(path), what, advice)


def _parsed(path: Path, text: str) -> Any:
    try:
        return tomllib.loads(text) if path.suffix.lower() == ".toml" else _yaml(text)
    except tomllib.TOMLDecodeError as error:
        what = f"this is not TOML: {error}{_no_date(text, str(error))}"
    except _BadYaml as error:
        what = f"this is not YAML that can be used: {error}"
    raise PolicyError(str(path), what, "Correct the line.")


def _no_date(text: str, error: str) -> str:
    """What looks like a date and is none, in the line of an error of TOML, which may speak of a bracket instead."""
    place = re.search(r"at line (\d+)", error)
    line = "" if place is None else text.splitlines()[int(place[1]) - 1]
    for found in _DAY.findall(line):
        try:
            dt.date.fromisoformat(found)
        except ValueError:
            return f"; {found} {_IS_NO_DATE}"
    return ""


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

    def day(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> Any:
        try:
            return loader.construct_yaml_timestamp(node)
        except ValueError:
            raise _BadYaml(f"{node.value} in line {node.start_mark.line + 1} {_IS_NO_DATE}") from None

    # YAML 1.1, which PyYAML reads, wants a point in 1.0e-6 and takes 1e-6 for text; people write the latter.
    powers = re.compile(r"[-+]?[0-9]+(?:\.[0-9]*)?[eE][-+]?[0-9]+$")
    Loader.add_implicit_resolver("tag:yaml.org,2002:float", powers, list("-+0123456789"))
    Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, mapping)
    Loader.add_constructor("tag:yaml.org,2002:timestamp", day)
    try:
        return yaml.load(text, Loader=Loader)  # noqa: S506 - a subclass of SafeLoader
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f" in line {mark.line + 1}" if mark is not None else ""
        what = f"{getattr(error, 'problem', None) or 'it cannot be parsed'}{place}"
    raise _BadYaml(what)
