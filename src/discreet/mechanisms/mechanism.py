"""What every mechanism is: a frozen description that knows its cost, releases values and states its error."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self

from discreet.arguments import ADJACENCIES, count, one_of
from discreet.deferred import load_all
from discreet.errors import InvalidArgument, StorageError, UnknownVersion

if TYPE_CHECKING:
    from discreet.accounting.cost import Cost
    from discreet.noise import Generator

__all__ = ["VERSION", "Mechanism"]

VERSION = 1


@dataclasses.dataclass(frozen=True, repr=False)
class Mechanism(ABC):
    """Value in, private value out: a frozen, comparable, storable description, validated when it is made.

    A subclass sets `kind` (its name in stored descriptions) and brings `cost`, `release` and `error`. Its fields are
    keyword arguments that make it again. Whatever can be refused is refused before any randomness is used.
    `cost` speaks about data sets that are neighbours in the sense of `adjacency`; the sensitivity must be that of the
    same relation.
    """

    kind: ClassVar[str]
    registry: ClassVar[dict[str, type[Mechanism]]] = {}

    adjacency: str = dataclasses.field(default="add-remove", kw_only=True)

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "kind" in cls.__dict__:
            Mechanism.registry[cls.kind] = cls

    @classmethod
    def kinds(cls) -> dict[str, type[Self]]:
        """All mechanisms by their name in stored descriptions: those of this package, and others once imported."""
        load_all("discreet.mechanisms")
        return {kind: made for kind, made in Mechanism.registry.items() if issubclass(made, cls)}

    def __post_init__(self) -> None:
        one_of("adjacency", self.adjacency, ADJACENCIES)

    def _set(self, **values: Any) -> None:
        """Fill in the fields of a frozen mechanism whose __init__ is its own, and check what all have in common."""
        for name, value in values.items():
            object.__setattr__(self, name, value)
        one_of("adjacency", self.adjacency, ADJACENCIES)

    @property
    @abstractmethod
    def cost(self) -> Cost:
        """What one release reveals about one person, with the mechanism's own dominating pair where there is one."""

    @abstractmethod
    def release(self, value: Any, *, generator: Generator | None = None) -> Any:
        """The private value: a scalar for a scalar, an array for an array; `generator` is for tests alone."""

    def check(self, value: Any) -> None:  # noqa: B027 - what a mechanism does not know it need not check
        """Refuses what `release` refuses whatever the data are: a wrong type, dtype or shape.

        It looks at no number, so that it tells nothing and can be called before anything is paid.
        """

    @abstractmethod
    def error(self, confidence: float = 0.95) -> float:
        """The half-width that holds with this probability: |released - value| <= error(confidence)."""

    # ---------------------------------------------------------------- auditing

    def examples(self) -> list[tuple[Any, Any]]:
        """Pairs of neighbouring values, the worst ones known: what `discreet.audit.check` releases."""
        return []

    def releases(self, value: Any, n: int, *, generator: Generator | None = None) -> Any:
        """n independent releases of one value, for audits and simulations: a list, or an array of them.

        They cost n times what one costs.
        """
        return [self.release(value, generator=generator) for _ in range(count("n", n))]

    # ---------------------------------------------------------------- storing

    def fields(self) -> dict[str, Any]:
        """The keyword arguments that make this mechanism again, as JSON values."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    @classmethod
    def from_fields(cls, values: dict[str, Any]) -> Self:
        """The mechanism with these keyword arguments."""
        known = {field.name for field in dataclasses.fields(cls)}
        if set(values) != known:
            raise StorageError(
                f"a '{cls.kind}' mechanism needs the fields {sorted(known)} and has {sorted(values)}. "
                "Write the description again with to_dict()."
            )
        return cls(**values)

    def to_dict(self) -> dict[str, Any]:
        """A lossless, versioned description made of JSON values."""
        return {"format": "discreet.mechanism", "version": VERSION, "kind": self.kind, **self.fields()}

    @classmethod
    def from_dict(cls, description: object) -> Self:
        """The mechanism described by `to_dict`; refuses unknown versions, other kinds and malformed input."""
        if not isinstance(description, Mapping) or description.get("format") != "discreet.mechanism":
            raise StorageError(
                "this is not the description of a mechanism: it needs 'format': 'discreet.mechanism'. See to_dict()."
            )
        version = description.get("version")
        if isinstance(version, bool) or not isinstance(version, int) or not 1 <= version <= VERSION:
            raise UnknownVersion(version, VERSION)
        if not all(isinstance(name, str) for name in description):
            raise StorageError("the field names of a mechanism must be strings.")
        kind = description.get("kind")
        kinds = cls.kinds()
        known = kinds.get(kind) if isinstance(kind, str) else None
        if known is None:
            raise StorageError(
                f"the description holds a mechanism of kind {kind!r}; {cls.__name__}.from_dict reads "
                f"{', '.join(sorted(kinds))}. Upgrade discreet, import the module that defines it, or use "
                "Mechanism.from_dict()."
            )
        values = {name: value for name, value in description.items() if name not in ("format", "version", "kind")}
        try:
            return known.from_fields(values)
        except InvalidArgument as error:
            raise StorageError(f"a '{kind}' mechanism has an invalid value: {error}") from error
        except (TypeError, ValueError, AttributeError) as error:
            if isinstance(error, StorageError):
                raise
            raise StorageError(f"a '{kind}' mechanism is malformed: {error}") from error

    # ---------------------------------------------------------------- showing

    def __repr__(self) -> str:
        shown = (
            f"{field.name}={_short(getattr(self, field.name))}"
            for field in dataclasses.fields(self)
            if field.name != "adjacency" and getattr(self, field.name) is not None
        )
        suffix = () if self.adjacency == "add-remove" else (f"adjacency={self.adjacency!r}",)
        return f"{type(self).__name__}({', '.join((*shown, *suffix))})"


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"<{type(value).__name__} of {len(text)} characters>"
