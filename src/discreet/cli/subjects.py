"""Mechanisms named on the command line: `laplace(epsilon=1, sensitivity=1)`, or `module:object` of the user's own.

The former is parsed, never evaluated; the latter imports the user's module, from the current directory too, because
that is what it asks for.
"""

from __future__ import annotations

import ast
import difflib
import importlib
import inspect
import re
import sys
from pathlib import Path
from typing import Any

import typer

from discreet.cli.number import number

__all__ = ["mechanism", "value"]

_DOTTED = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")


def mechanism(text: str) -> Any:
    """The mechanism that the text names."""
    return _imported(text) if _DOTTED.fullmatch(text) else _described(text)


def value(text: str, option: str) -> Any:
    """An input written as a Python literal: a number, a list of numbers, a word in quotes."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        raise typer.BadParameter(f"'{text}' is no number, list or word in quotes", param_hint=option) from None


def _imported(text: str) -> Any:
    module, _, path = text.partition(":")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        found: Any = importlib.import_module(module)
        for name in path.split("."):
            found = getattr(found, name)
    except ImportError as error:
        raise _wrong(f"the module '{module}' cannot be imported: {error}") from None
    except AttributeError as error:
        raise _wrong(f"'{path}' is not in the module '{module}': {error}") from None
    if inspect.isclass(found):
        raise _wrong(f"'{text}' is a class; name an object, such as one made by {found.__name__}(...) in that module")
    return found


def _described(text: str) -> Any:
    from discreet import mechanisms

    known = {made.kind: made for made in mechanisms.Mechanism.kinds().values() if not inspect.isabstract(made)}
    names = {**known, **{made.__name__: made for made in known.values()}}
    try:
        call = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        call = None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        raise _wrong(f"'{text}' is neither a mechanism such as laplace(epsilon=1, sensitivity=1) nor module:object")
    made = names.get(call.func.id)
    if made is None:
        close = difflib.get_close_matches(call.func.id, names, n=1)
        hint = f"; did you mean '{close[0]}'?" if close else ""
        raise _wrong(f"unknown mechanism '{call.func.id}'{hint}\n  mechanisms: {', '.join(sorted(known))}")
    if any(keyword.arg is None for keyword in call.keywords):
        raise _wrong("** is not understood here")
    arguments = [_argument(node) for node in call.args]
    named = {str(keyword.arg): _argument(keyword.value) for keyword in call.keywords}
    try:
        inspect.signature(made).bind(*arguments, **named)
    except TypeError as error:
        raise _wrong(f"{call.func.id}: {error}; it is {call.func.id}{_parameters(made)}") from None
    return made(*arguments, **named)


def _parameters(made: type) -> str:
    names = [parameter for parameter in inspect.signature(made).parameters if parameter != "adjacency"]
    return f"({', '.join(names)})"


def _argument(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError):
        return number(ast.unparse(node).replace(" ", ""))


def _wrong(problem: str) -> Exception:
    return typer.BadParameter(problem, param_hint="MECHANISM")
