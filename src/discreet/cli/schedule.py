"""How often a mechanism runs and on which share of the data: `--rate` and `--steps`, or what people know instead.

Who trains by epochs knows the size of the data and of a batch: with Poisson batches of that size on average,

    rate = batch / records,        steps = epochs * records / batch,

the steps rounded up, so that the cost is never too small. Where `--scheme` names a way of sampling whose cost is that
of a whole epoch, the epochs themselves are counted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import typer

from discreet.cli.usage import WrongUsage

__all__ = ["Schedule"]


_BY_EPOCH = ("balls_in_bins", "cyclic_poisson")


@dataclass(frozen=True)
class Schedule:
    """The rate and the steps of one mechanism, given or derived; None where neither."""

    rate: float | None = None
    steps: float | None = None
    """How often the sampled mechanism runs; whole epochs, or cycles, if `scheme` speaks of those."""
    scheme: str = "poisson"
    derived: str = ""
    """What was derived from which numbers, in words."""

    @classmethod
    def of(
        cls,
        *,
        rate: float | None,
        steps: float | None,
        epochs: float | None,
        batch: float | None,
        records: float | None,
        scheme: str = "poisson",
    ) -> Schedule:
        """The schedule that the options describe; refuses two descriptions of the same number."""
        if scheme != "poisson" and rate is None and batch is None:
            raise WrongUsage(f"--scheme {scheme} is a way of sampling: give --rate, or --batch and --records")
        if scheme in _BY_EPOCH:
            if steps is not None:
                raise WrongUsage(
                    f"--scheme {scheme} is accounted for by whole epochs (or cycles): give --epochs, not --steps"
                )
            if scheme == "cyclic_poisson" and (rate is None or batch is not None or records is not None):
                raise WrongUsage("--scheme cyclic_poisson needs --rate, at which a group is sampled in its turn")
            if rate is not None and batch is None and records is None:
                return cls(rate, epochs, scheme)
        if batch is None and records is None and epochs is None:
            return cls(rate, steps, scheme)
        if rate is not None:
            raise WrongUsage("give --rate, or --batch and --records, not both: rate = batch / records")
        if steps is not None and epochs is not None:
            raise WrongUsage("give --steps or --epochs, not both: steps = epochs * records / batch")
        if batch is None or records is None:
            raise WrongUsage("--epochs, --batch and --records belong together: rate = batch / records")
        batch, records = _size("batch", batch), _size("records", records)
        if batch > records:
            from discreet.errors import InvalidArgument

            raise InvalidArgument("batch", batch, f"pass a number of records per batch, at most --records {records:g}")
        rate = batch / records
        words = f"rate = {batch:g}/{records:g} = {rate:.6g}"
        if scheme in _BY_EPOCH:
            return cls(rate, epochs, scheme, words)
        if epochs is not None:
            exact = Fraction(_size("epochs", epochs)) * Fraction(records) / Fraction(batch)
            steps = math.ceil(exact)
            rounded = f", rounded up from {float(exact):.6g}" if steps != exact else ""
            words += f", steps = {epochs:g} * {records:g}/{batch:g} = {steps}{rounded}"
        drawn = "by Poisson sampling" if scheme == "poisson" else "afresh, without replacement"
        return cls(rate, steps, scheme, f"{words}; batches drawn {drawn}")

    @property
    def counted(self) -> str:
        """The option that says how often."""
        return "epochs" if self.scheme in _BY_EPOCH else "steps"

    @property
    def is_given(self) -> bool:
        """Whether any of the options was used."""
        return self.rate is not None or self.steps is not None

    def announce(self, *, json: bool = False) -> None:
        """Say on standard error what was derived, unless it goes into the JSON."""
        if self.derived and not json:
            typer.echo(f"Derived: {self.derived}.", err=True)

    def fields(self) -> dict[str, Any]:
        """The keys of `--json`: what was derived, if anything."""
        return {"derived": {"rate": self.rate, "steps": self.steps, "words": self.derived}} if self.derived else {}


def _size(name: str, value: float) -> float:
    from discreet.arguments import positive

    positive(name, value)
    return value
