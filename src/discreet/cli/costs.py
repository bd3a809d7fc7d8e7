"""The costs named on a command line: `--gaussian 1.1 --rate 256/60000 --steps 14000`, `--cost`, `--file`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.cli.expression import Expression
from discreet.cli.schedule import Schedule
from discreet.cli.usage import WrongUsage
from discreet.errors import InvalidArgument, StorageError

if TYPE_CHECKING:
    from discreet.accounting import Cost

__all__ = ["Named", "Selection", "one_mechanism"]


@dataclass(frozen=True)
class Named:
    """A cost and what the user called it."""

    name: str
    cost: Cost


@dataclass(frozen=True)
class Selection:
    """Which costs the options of a command name."""

    gaussian: float | None
    laplace: float | None
    schedule: Schedule
    expressions: list[str] | None
    files: list[str] | None
    adjacency: str

    def composed(self) -> Cost:
        """All of them, as parts of one composition."""
        first, *rest = self.each()
        total = first.cost
        for following in rest:
            total = total + following.cost
        return total

    def each(self) -> list[Named]:
        """Each of them on its own."""
        found = self._shorthand()
        found += [Named(text.strip(), Expression(text, self.adjacency).cost()) for text in self.expressions or ()]
        found += [Named("standard input" if name == "-" else name, stored(name)) for name in self.files or ()]
        if not found:
            raise WrongUsage("name a cost with --gaussian, --laplace, --cost or --file")
        return found

    def _shorthand(self) -> list[Named]:
        given = [(name, value) for name in ("gaussian", "laplace") if (value := getattr(self, name)) is not None]
        if len(given) > 1:
            raise WrongUsage('give one of --gaussian and --laplace, or --cost "gaussian(...) + laplace(...)"')
        if not given:
            refuse_strays(self.schedule)
            return []
        [(name, value)] = given
        rate, steps = self.schedule.rate, self.schedule.steps
        cost = one_mechanism(name, self.schedule, self.adjacency)(value)
        scheme = "" if self.schedule.scheme == "poisson" else f", scheme='{self.schedule.scheme}'"
        text = f"{name}({value:g})" if rate is None else f"{name}({value:g}).sampled({rate:g}{scheme})"
        return [Named(text if steps is None else f"{steps} * {text}", cost)]


def refuse_strays(schedule: Schedule) -> None:
    """`--rate` and `--steps` mean nothing without the mechanism that they are about."""
    if schedule.is_given:
        raise WrongUsage(
            "--rate and --steps (or --epochs, --batch, --records) belong to one mechanism (--gaussian, --laplace or "
            "--mechanism); "
            "in a --cost write 14000 * gaussian(1.1).sampled(256/60000)"
        )


def one_mechanism(name: str, schedule: Schedule, adjacency: str) -> Callable[[float], Cost]:
    """The cost of one mechanism, sampled and repeated, as a function of its parameter."""
    from discreet.accounting import Cost

    rate, steps = schedule.rate, schedule.steps

    def make(parameter: float) -> Cost:
        cost: Cost = getattr(Cost, name)(parameter, adjacency=adjacency)
        if rate is not None:
            cost = cost.sampled(rate, scheme=schedule.scheme)
        if steps is None:
            return cost
        try:
            return steps * cost
        except InvalidArgument as error:
            raise InvalidArgument(schedule.counted, error.value, error.advice) from None

    return make


def stored(name: str) -> Cost:
    """The cost in a file, or in what `--json` printed about it."""
    from discreet.accounting import Cost

    try:
        text = sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
    except OSError as error:
        raise WrongUsage(f"'{name}' cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise StorageError(f"'{name}' is not text. Pass the JSON that Cost.to_json() or --json wrote.") from None
    try:
        return Cost.from_dict(_description(json.loads(text)))
    except (json.JSONDecodeError, RecursionError) as error:
        raise StorageError(
            f"'{name}' is not JSON: {error}. Pass the text that Cost.to_json() or --json wrote."
        ) from None
    except StorageError as error:
        error.add_note(f"  in: {name}")
        raise


def _description(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise StorageError("the JSON text must hold an object. Pass the text that Cost.to_json() or --json wrote.")
    inner = value.get("cost")
    return inner if isinstance(inner, Mapping) and "format" not in value else value
