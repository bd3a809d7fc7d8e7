"""What `Curator.fit` can fit: models that say their price before they see data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from discreet.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Sequence

    from discreet.accounting import Cost

__all__ = ["Model", "with_price"]


class Model(Protocol):
    """What `Curator.fit` can fit: `discreet.learning` has them."""

    @property
    def price(self) -> Cost:
        """The most that a fit reveals, known before any data is read."""

    def fit_unseen(self, X: Any, y: Any, *, names: Sequence[str] | None = None) -> Any:
        """Learn, at no more than the price; whether it succeeds depends on no value in the data."""


def with_price(model: Any) -> Model:
    """The model; for a pipeline, what the first of its steps that is private makes of it."""
    if hasattr(type(model), "price") and hasattr(type(model), "fit_unseen"):
        priced: Model = model
        return priced
    for step in getattr(model, "steps", ()):
        if hasattr(step[-1], "private_pipeline"):
            pipeline: Model = step[-1].private_pipeline(model)
            return pipeline
    raise InvalidArgument(
        "model", type(model).__name__, "pass a model of discreet.learning, such as LogisticRegression()"
    )
