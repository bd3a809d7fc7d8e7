"""The questions, each with its true answer from the stored references of tests/reference."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

from reference import tables

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Question:
    """epsilon of a composition at a delta or, for ``calibrates``, the noise multiplier that gives the epsilon."""

    name: str
    group: str
    mechanisms: tuple[Mapping[str, object], ...]
    delta: float
    truth: Decimal
    calibrates: bool = False
    epsilon: float | None = None

    def scaled(self, factor: float) -> Question:
        """The same question with all noise (or epsilon, or the rate) changed a little: as hard, but never seen."""
        changed = tuple(_scaled(m, factor) for m in self.mechanisms)
        return Question(self.name, self.group, changed, self.delta, self.truth, self.calibrates, self.epsilon)


def _scaled(mechanism: Mapping[str, object], factor: float) -> Mapping[str, object]:
    name = next(key for key in ("noise_multiplier", "epsilon", "rate") if key in mechanism)
    return {**mechanism, name: float(str(mechanism[name])) * factor}


_CHOSEN = [
    *((f"ordinary {k}", "ordinary") for k in range(1, 7)),
    ("small delta", "hard"),
    ("small epsilon", "hard"),
    ("little noise", "hard"),
    ("million steps", "hard"),
    ("200 different mechanisms", "many"),
    ("100 randomized responses", "atoms"),
    ("hundred million steps", "extreme"),
    ("deep tail", "extreme"),
]

QUICK = ("ordinary 1", "ordinary 2", "small delta", "100 randomized responses", "calibrate")


def questions() -> list[Question]:
    """All questions in the order of the table."""
    stored = {row.name: row for row in tables.rows()}
    listed = []
    for name, group in _CHOSEN:
        row = stored[name]
        if row.delta is None:
            raise ValueError(f"{name} does not ask for epsilon")
        listed.append(Question(name, group, row.mechanisms, row.delta, row.larger))
    target = tables.calibrations()[0]
    step = {"kind": "sampled_gaussian", "rate": target["rate"], "count": target["count"]}
    listed.append(
        Question(
            "calibrate",
            "calibrate",
            (step,),
            float(str(target["delta"])),
            Decimal(str(target["noise_multiplier"])),
            calibrates=True,
            epsilon=float(str(target["epsilon"])),
        )
    )
    return listed


def described(question: Question) -> str:
    """The parameters in a few words."""
    if len(question.mechanisms) > 1:
        return f"{len(question.mechanisms)} sampled Gaussians x 10, delta {question.delta:g}"
    m = question.mechanisms[0]
    if m["kind"] == "randomized_response":
        return f"epsilon {m['epsilon']} x {m['count']}, delta {question.delta:g}"
    what = f"epsilon {question.epsilon:g}" if question.calibrates else f"sigma {m['noise_multiplier']:g}"
    return f"{what}, q {float(str(m['rate'])):.3g}, T {m['count']}, delta {question.delta:g}"
