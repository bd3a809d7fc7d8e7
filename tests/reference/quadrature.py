"""Gauss–Legendre rules as balls, and a test of whether a panel is resolved."""

from __future__ import annotations

from functools import cache

from flint import acb, arb, ctx

PRECISION = 256
"""Working precision in bits: 77 digits, so that cancellation of forty digits leaves more than thirty."""


def use_precision(bits: int = PRECISION) -> None:
    """Set the working precision of every ball in this process."""
    ctx.prec = bits


@cache
def legendre(order: int) -> tuple[tuple[arb, ...], tuple[arb, ...]]:
    """Nodes and weights of the Gauss–Legendre rule of this order on [-1, 1]."""
    pairs = [arb.legendre_p_root(order, k, weight=True) for k in range(order)]
    return tuple(p[0] for p in pairs), tuple(p[1] for p in pairs)


@cache
def _last_coefficients(order: int, how_many: int = 4) -> tuple[tuple[arb, ...], ...]:
    nodes, weights = legendre(order)
    return tuple(
        tuple(w * x.legendre_p(n) * (2 * n + 1) / 2 for x, w in zip(nodes, weights, strict=True))
        for n in range(order - how_many, order)
    )


def unresolved(values: list[acb]) -> float:
    """Largest of the last four Legendre coefficients of a function given at the nodes: its interpolation error."""
    rows = _last_coefficients(len(values))
    return max(float(abs(sum((a * v for a, v in zip(row, values, strict=True)), acb(0))).mid()) for row in rows)
