"""From SQL text to a `Question`: types, expressions, relations with their stability, blocks, and refusals."""

from __future__ import annotations

__all__: list[str] = []
