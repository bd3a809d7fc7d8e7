"""A privacy report in plain words: what was spent, by which theorem, under which assumptions, and who is protected."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from discreet.accounting.cost import Cost

__all__ = ["Release", "Report"]

_WHO = {
    "add-remove": "each record: the result is nearly as likely with it as without it",
    "replace-one": "each record: the result is nearly as likely with it as with any other in its place",
}


@dataclass(frozen=True)
class Release:
    """One thing that a fit released: what it is, what it cost, and why it costs that."""

    what: str
    cost: Cost
    why: str

    def __str__(self) -> str:
        return f"{self.what}: {self.cost!r}. {self.why}"


@dataclass(frozen=True)
class Report:
    """What a fit revealed; print it, store it with `to_dict`, or paste `to_markdown` into a document."""

    model: str
    solver: str
    cost: Cost
    epsilon: float
    delta: float
    releases: tuple[Release, ...]
    public: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
    choices: tuple[str, ...] = field(default=())

    @property
    def protected(self) -> str:
        """Who is protected."""
        return _WHO[self.cost.adjacency]

    def _sections(self) -> list[tuple[str, list[str]]]:
        return [
            ("Released", [str(release) for release in self.releases]),
            ("Taken as public", list(self.public)),
            ("Assumed", list(self.assumptions)),
            ("Chosen from public facts", list(self.choices)),
        ]

    def _headline(self) -> str:
        return (
            f"{self.model} by {self.solver}: epsilon = {self.epsilon:.6g} at delta = {self.delta:.3g} "
            f"({self.cost.adjacency})"
        )

    def __str__(self) -> str:
        lines = [self._headline(), f"Protects {self.protected}."]
        for title, items in self._sections():
            if items:
                lines.append(f"{title}:")
                lines.extend(f"- {item}" for item in items)
        return "\n".join(lines)

    def to_markdown(self) -> str:
        """The report as Markdown."""
        lines = [f"### {self._headline()}", "", f"Protects {self.protected}."]
        for title, items in self._sections():
            if items:
                lines += ["", f"**{title}**", ""]
                lines.extend(f"- {item}" for item in items)
        return "\n".join(lines) + "\n"

    def _repr_markdown_(self) -> str:
        return self.to_markdown()

    def to_dict(self) -> dict[str, Any]:
        """The report as plain values, the costs as `Cost.to_dict` gives them."""
        return {
            "model": self.model,
            "solver": self.solver,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "adjacency": self.cost.adjacency,
            "protects": self.protected,
            "cost": self.cost.to_dict(),
            "releases": [{"what": r.what, "cost": r.cost.to_dict(), "why": r.why} for r in self.releases],
            "public": list(self.public),
            "assumptions": list(self.assumptions),
            "choices": list(self.choices),
        }

    def to_json(self) -> str:
        """The report as JSON."""
        return json.dumps(self.to_dict(), indent=2)
