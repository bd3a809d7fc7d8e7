"""Sampled mechanisms a few times without any transform: closed forms, and nested quadrature over the noise."""

from __future__ import annotations

import itertools

from flint import arb

from reference.exact import normal_tail
from reference.quadrature import legendre


def sampled_gaussian(sigma: float, rate: float, direction: str, epsilon: arb) -> arb:
    """delta of one Poisson-sampled Gaussian release, any real epsilon, from the normal tails at the threshold.

    With r = exp((2x - 1)/(2 sigma^2)), "remove" has P' > e^epsilon Q where r > (e^epsilon - 1 + q)/q, "add" has
    Q > e^epsilon P' where r < (e^-epsilon - 1 + q)/q.
    """
    s, q = arb(sigma), arb(rate)
    e = epsilon.exp()
    ratio = ((e if direction == "remove" else 1 / e) - 1 + q) / q
    if not ratio > 0:
        return 1 - e if direction == "remove" else arb(0)
    x = (s * s * ratio.log() + arb(1) / 2) / s
    low, high = (
        (normal_tail(x), normal_tail(x - 1 / s)) if direction == "remove" else (normal_tail(-x), normal_tail(1 / s - x))
    )
    return q * high + (1 - q - e) * low if direction == "remove" else low - e * ((1 - q) * low + q * high)


def sampled_laplace(b: float, rate: float, direction: str, epsilon: arb) -> arb:
    """delta of one Poisson-sampled Laplace release, any real epsilon.

    Sampling maps E_{e^epsilon}(P' || Q) to q E_g(P || Q), e^epsilon = 1 - q + q g; the other order follows from
    E_g(Q || P) = 1 - g + g E_{1/g}(P || Q), an identity of every pair.
    """
    q, e = arb(rate), epsilon.exp()
    if direction == "add":
        return 1 - e + e * sampled_laplace(b, rate, "remove", -epsilon)
    g = (e - 1 + q) / q
    if not g > (-1 / arb(b)).exp():
        return 1 - e
    if g >= (1 / arb(b)).exp():
        return arb(0)
    return q * -((g.log() - 1 / arb(b)) / 2).expm1()


def sampled_gaussian_repeated(
    sigma: float, rate: float, direction: str, epsilon: arb, *, count: int, panels: int = 64, order: int = 24
) -> arb:
    """delta of a few releases: the mean over the first of the delta of the others at epsilon minus its loss.

    Composite Gauss–Legendre over the noise, nested count - 1 deep: slow, and independent of every transform.
    """
    if count == 1:
        return sampled_gaussian(sigma, rate, direction, epsilon)
    s, q = arb(sigma), arb(rate)
    sign = 1 if direction == "remove" else -1
    nodes, weights = legendre(order)
    total = arb(0)
    for left, right in itertools.pairwise(_panels(s, q, sign, epsilon, count, panels)):
        middle, half = (left + right) / 2, (right - left) / 2
        for node, weight in zip(nodes, weights, strict=True):
            x = middle + half * node
            ratio = 1 - q + q * (x / s - 1 / (2 * s * s)).exp()
            density = (-x * x / 2).exp() * (ratio if sign > 0 else 1)
            rest = sampled_gaussian_repeated(
                sigma, rate, direction, epsilon - sign * ratio.log(), count=count - 1, panels=panels, order=order
            )
            total += half * weight * density * rest
    return total / (2 * arb.pi()).sqrt()


def _panels(s: arb, q: arb, sign: int, epsilon: arb, count: int, panels: int) -> list[arb]:
    """Ends of panels: even ones, and halving ones towards the noise beyond which the rest is trivial.

    There epsilon minus the loss leaves the range of the others' losses, (count - 1) ln(1-q) in size: their delta
    is infinitely smooth but not analytic, a function of the logarithm of the distance.
    """
    reach = arb(18)
    start, stop = -reach, reach + (1 / s if sign > 0 else 0)
    edges = [start + (stop - start) * k / panels for k in range(panels + 1)]
    ratio = (sign * epsilon - (count - 1) * (1 - q).log()).exp()
    if ratio > 1 - q:
        kink = s * ((ratio - 1 + q) / q).log() + 1 / (2 * s)
        edges += [kink + side * reach / 2**k for k in range(panels) for side in (-1, 1)] + [kink]
    return sorted(e.mid() for e in edges if start <= e <= stop)
