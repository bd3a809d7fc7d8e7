"""Costs written as text: `14000 * gaussian(1.1).sampled(256/60000) + laplace(2)`.

The language is a handful of Python: numbers with + - * / **, the constructors of `Cost` by name, `.sampled(...)`,
`.shuffled(...)`, `.grouped(...)` and `.with_adjacency(...)`, sums of costs, and a whole number times a cost. The text
is parsed, never evaluated by Python: whatever is not on this list is refused, with a pointer to the place.
"""

from __future__ import annotations

import ast
import difflib
import inspect
import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

from discreet.errors import DiscreetError

if TYPE_CHECKING:
    from discreet.accounting import Cost

__all__ = ["CONSTRUCTORS", "METHODS", "UNKNOWN", "Expression"]

CONSTRUCTORS = (
    "gaussian",
    "laplace",
    "discrete_gaussian",
    "discrete_laplace",
    "staircase",
    "randomized_response",
    "exponential_mechanism",
    "pure",
    "approximate",
    "concentrated",
    "gaussian_dp",
    "renyi",
    "from_pair",
    "zero",
)
"""What a cost can start with: the constructors of `Cost` whose arguments can be written as text."""

METHODS = ("sampled", "grouped", "shuffled", "with_adjacency")
"""What can follow a cost after a dot."""

UNKNOWN = "x"
"""The number that calibration looks for."""

_LONGEST = 20_000
_SHOWN, _LEFT = 100, 40  # how much of a long expression is shown, and how much of it before the place


def _power(base: float, exponent: float) -> float:
    """base**exponent, whole where both are, and never longer than a float reaches."""
    if abs(float(base)) ** float(exponent) == math.inf:
        raise OverflowError
    power = base**exponent
    if not isinstance(power, int | float):
        raise ArithmeticError("not real")
    return power


_ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
    ast.Pow: _power,
}


@dataclass(frozen=True)
class Expression:
    """A parsed cost; `cost()` is its value, `cost(x=...)` if it contains the unknown `x`."""

    text: str
    adjacency: str | None = None
    """Given to every constructor that does not name its own."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", " ".join(self.text.splitlines()).strip())
        self._tree()  # what cannot be read is refused at once

    @property
    def has_unknown(self) -> bool:
        """Whether the unknown `x` appears."""
        return any(isinstance(node, ast.Name) and node.id == UNKNOWN for node in ast.walk(self._tree()))

    def cost(self, x: float | None = None) -> Cost:
        """The cost, with `x` put in for the unknown."""
        try:
            return _Evaluation(self.text, self.adjacency, x).cost(self._tree())
        except RecursionError:
            raise self._too_deep() from None

    def _tree(self) -> ast.expr:
        if len(self.text) > _LONGEST:
            raise _wrong(
                f"the expression has {len(self.text)} characters and at most {_LONGEST} are read; "
                "put the cost into a file (--file)"
            )
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", SyntaxWarning)  # about Python; what is wrong here is said below
                return ast.parse(self.text, mode="eval").body
        except SyntaxError as error:
            where = _pointer(self.text, (error.offset or 1) - 1, None)
            raise _wrong(f"this is not an expression: {error.msg}{where}") from None
        except (RecursionError, MemoryError):
            raise self._too_deep() from None
        except ValueError as error:  # null bytes, integers of many thousand digits
            raise _wrong(f"this is not an expression: {error}") from None

    @staticmethod
    def _too_deep() -> Exception:
        return _wrong("the expression is nested too deeply; use --cost several times, or --file")


def _wrong(problem: str) -> Exception:
    return typer.BadParameter(problem, param_hint="--cost")


class _Evaluation:
    """One walk over the tree of an expression."""

    def __init__(self, text: str, adjacency: str | None, x: float | None) -> None:
        self.text, self.adjacency, self.x = text, adjacency, x

    def cost(self, node: ast.expr) -> Cost:
        """The value of a node that must be a cost."""
        from discreet.accounting import Cost

        value = self._value(node)
        if not isinstance(value, Cost):
            raise self._refusal(node, "this is a number, not a cost; write a mechanism such as gaussian(1.1)")
        return value

    def _value(self, node: ast.expr) -> Cost | float:
        match node:
            case ast.Constant(value=bool() | complex() | str() | bytes()):
                raise self._refusal(node, "only numbers and costs can stand here")
            case ast.Constant(value=int() | float() as number):
                return number
            case ast.UnaryOp(op=ast.UAdd() | ast.USub() as sign, operand=operand):
                value = self._number(operand)
                return -value if isinstance(sign, ast.USub) else value
            case ast.BinOp(left=left, op=operator, right=right):
                return self._binary(node, left, operator, right)
            case ast.Name(id="x"):
                if self.x is None:
                    raise self._refusal(node, "x is the unknown of 'discreet account calibrate'; write a number here")
                return self.x
            case ast.Name(id=name) if name in CONSTRUCTORS:
                raise self._refusal(node, f"{name} needs its arguments: {_signature(name)}")
            case ast.Name(id=name):
                raise self._unknown(node, name, CONSTRUCTORS, "mechanisms")
            case ast.Call():
                return self._call(node)
            case ast.Attribute(attr=name):
                raise self._refusal(node, f".{name} needs its arguments in parentheses")
            case _:
                raise self._refusal(
                    node, "only numbers, mechanisms, + - * / ** and .sampled(), .grouped() are understood"
                )

    def _number(self, node: ast.expr) -> float:
        value = self._value(node)
        if not isinstance(value, int | float):
            raise self._refusal(node, "a number must stand here, and this is a cost")
        return value

    def _binary(self, node: ast.expr, left: ast.expr, operator: ast.operator, right: ast.expr) -> Cost | float:
        from discreet.accounting import Cost

        compute = _ARITHMETIC.get(type(operator))
        if isinstance(operator, ast.BitXor):
            raise self._refusal(node, "^ is not a power here; write 10**9 or 1e9")
        if compute is None:
            raise self._refusal(node, "of the operators, only + - * / and ** are understood")
        a, b = self._value(left), self._value(right)
        costs = isinstance(a, Cost) + isinstance(b, Cost)
        if costs == 2 and not isinstance(operator, ast.Add):
            raise self._refusal(node, "two costs can only be added")
        if costs == 1 and not isinstance(operator, ast.Mult):
            raise self._refusal(node, "a cost can be repeated, as in 3 * cost, or added to another cost")
        try:
            value: Cost | float = compute(a, b)
        except ZeroDivisionError:
            raise self._refusal(node, "this divides by zero") from None
        except OverflowError:
            raise self._refusal(node, "this number is too large") from None
        except DiscreetError as error:
            self._point(error, node)
            raise
        except ArithmeticError:
            raise self._refusal(node, "this is not a real number") from None
        return value

    def _call(self, node: ast.Call) -> Cost:
        from discreet.accounting import Cost

        target: Any
        match node.func:
            case ast.Name(id=name) | ast.Attribute(value=ast.Name(id="Cost"), attr=name):
                if name not in CONSTRUCTORS:
                    raise self._unknown(node.func, name, CONSTRUCTORS, "mechanisms")
                target = getattr(Cost, name)
            case ast.Attribute(value=inner, attr=name):
                cost = self._value(inner)
                if not isinstance(cost, Cost):
                    raise self._refusal(inner, f".{name}() belongs to a cost, and this is a number")
                if name not in METHODS:
                    raise self._unknown(node.func, name, METHODS, "methods of a cost")
                target = getattr(cost, name)
            case _:
                raise self._refusal(node.func, "only mechanisms and methods of a cost can be called")
        arguments, named = self._arguments(node)
        if self.adjacency is not None and name in CONSTRUCTORS:
            named.setdefault("adjacency", self.adjacency)
        try:
            inspect.signature(target).bind(*arguments, **named)
        except TypeError as error:
            problem = _wrong_argument(target, name, named, len(arguments)) or error
            raise self._refusal(node, f"{problem}; it is {_signature(name)}") from None
        try:
            value: Cost = target(*arguments, **named)
        except DiscreetError as error:
            self._point(error, node)
            raise
        return value

    def _arguments(self, node: ast.Call) -> tuple[list[Any], dict[str, Any]]:
        named: dict[str, Any] = {}
        for keyword in node.keywords:
            if keyword.arg is None:
                raise self._refusal(keyword.value, "** is not understood here")
            named[keyword.arg] = self._argument(keyword.value)
        return [self._argument(argument) for argument in node.args], named

    def _argument(self, node: ast.expr) -> Any:
        """A number, a name in quotes, or a table: {order: value}, [probability, ...]."""
        match node:
            case ast.Dict(keys=keys, values=values) if None not in keys:
                pairs = zip(keys, values, strict=True)
                return {self._word_or_number(k): self._word_or_number(v) for k, v in pairs if k is not None}
            case ast.List(elts=items) | ast.Tuple(elts=items):
                return tuple(self._word_or_number(item) for item in items)
            case _:
                return self._word_or_number(node)

    def _word_or_number(self, node: ast.expr) -> str | float:
        return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else self._number(node)

    def _unknown(self, node: ast.expr, name: str, known: tuple[str, ...], what: str) -> Exception:
        close = difflib.get_close_matches(name, known, n=1)
        hint = f"; did you mean '{close[0]}'?" if close else ""
        return self._refusal(node, f"unknown name '{name}'{hint}", f"\n  {what}: {', '.join(known)}")

    def _refusal(self, node: ast.expr, problem: str, more: str = "") -> Exception:
        return _wrong(problem + self._where(node) + more)

    def _point(self, error: DiscreetError, node: ast.expr) -> None:
        """Add to an error of the library a note on the place in the expression, the innermost one."""
        if not hasattr(error, "__notes__"):
            error.add_note(self._where(node).lstrip("\n"))

    def _where(self, node: ast.expr) -> str:
        if isinstance(node, ast.Attribute):  # only the name after the dot
            end = node.end_col_offset or 0
            return _pointer(self.text, end - len(node.attr.encode()), end)
        return _pointer(self.text, node.col_offset, node.end_col_offset)


def _pointer(text: str, start: int, end: int | None) -> str:
    """The expression with carets under the place; `start` and `end` count UTF-8 bytes, as ast does."""
    raw = text.encode()
    before = len(raw[:start].decode(errors="ignore"))
    after = len(raw[:end].decode(errors="ignore")) if end is not None else before + 1
    cut = max(0, before - _LEFT) if len(text) > _SHOWN else 0
    shown, before, after = text[cut : cut + _SHOWN], before - cut, min(after - cut, _SHOWN)
    return f"\n    {shown}\n    {' ' * before}{'^' * max(1, after - before)}"


def _wrong_argument(target: Any, name: str, named: Mapping[str, Any], placed: int) -> str:
    """What to write instead of an argument that does not exist: the closest name, or the one that is needed."""
    known = inspect.signature(target).parameters
    unknown = next((word for word in named if word not in known), None)
    if unknown is None:
        return ""
    free = [word for word in list(known)[placed:] if word not in named and word != "adjacency"]
    needed = [word for word in free if known[word].default is inspect.Parameter.empty]
    close = difflib.get_close_matches(unknown, free, n=1) or needed[:1]
    return f"{name} has no argument '{unknown}'" + (f"; did you mean '{close[0]}'?" if close else "")


def _signature(name: str) -> str:
    from discreet.accounting import Cost

    names = []
    for parameter in inspect.signature(getattr(Cost, name)).parameters.values():
        if parameter.name == "self" or (parameter.name == "adjacency" and name in CONSTRUCTORS):
            continue
        default = "" if parameter.default is parameter.empty else f"={parameter.default}"
        names.append(parameter.name + default)
    return f"{name}({', '.join(names)})"
