"""Compositions whose delta is a finite sum: losses on a lattice, Laplace, (epsilon, delta) boxes. No quadrature."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import cache

from flint import arb, arb_poly, arb_series, ctx

from reference.quadrature import PRECISION

Atom = tuple[arb, arb]
"""A loss and its probability under P."""


def hockey_stick(atoms: Sequence[Atom], epsilon: arb) -> arb:
    """E (1 - exp(epsilon - L))_+ of a finite law; mass that is missing from the atoms sits at +infinity."""
    total = sum((p for _, p in atoms), arb(0))
    finite = sum((p * -(epsilon - loss).expm1() for loss, p in atoms if loss > epsilon), arb(0))
    return (1 - total) + finite


# ---- losses on a lattice ---------------------------------------------------------------------------------------------


def lattice_power(weights: Sequence[arb], count: int) -> list[arb]:
    """Weights of the count-fold sum of a law on 0, 1, 2, ...: the coefficients of the polynomial's power."""
    result, square = arb_poly([1]), arb_poly(list(weights))
    while count:
        if count & 1:
            result *= square
        count >>= 1
        if count:
            square *= square
    return [result[k] for k in range(result.degree() + 1)]


def trinomial(epsilon: float, stay: arb, up: arb, count: int) -> list[Atom]:
    """count-fold sum of the loss +epsilon (probability up), 0 (stay), -epsilon (up * exp(-epsilon))."""
    e = arb(epsilon)
    weights = lattice_power([up * (-e).exp(), stay, up], count)
    return [((k - count) * e, w) for k, w in enumerate(weights)]


def randomized_response(epsilon: float, count: int, options: int = 2) -> list[Atom]:
    """k-ary randomized response: e^epsilon/(e^epsilon + k - 1) for the truth, the rest shared evenly."""
    e = arb(epsilon).exp()
    return trinomial(epsilon, (options - 2) / (e + options - 1), e / (e + options - 1), count)


def staircase(epsilon: float, gamma: float, count: int) -> list[Atom]:
    """Staircase noise of sensitivity one against its shift by one: losses +-epsilon and 0.

    Density a exp(-k epsilon) on |x| in [k, k + gamma), a exp(-(k+1) epsilon) on [k + gamma, k + 1), so on the unit
    between the two centres the flat stretch |x - 1/2| < |gamma - 1/2| has loss zero.
    """
    e, g = (-arb(epsilon)).exp(), arb(gamma)
    a = (1 - e) / (2 * (g + e * (1 - g)))
    flat = (1 - 2 * g) * a * e if gamma <= 0.5 else (2 * g - 1) * a
    return trinomial(epsilon, flat, arb(1) / 2 + a * (g if gamma <= 0.5 else 1 - g), count)


def discrete_laplace(b: float, sensitivity: int, count: int) -> list[Atom]:
    """P(x) ~ exp(-|x|/b) on the integers against its shift: the losses (s - 2x)/b for x = 0..s."""
    r, s = (-1 / arb(b)).exp(), sensitivity
    norm = (1 - r) / (1 + r)
    weights = [r**s / (1 + r)] + [norm * r**x for x in range(s - 1, 0, -1)] + [1 / (1 + r)]
    return [((2 * k - s * count) / arb(b), w) for k, w in enumerate(lattice_power(weights, count))]


def discrete_gaussian(sigma: float, sensitivity: int, count: int) -> list[Atom]:
    """P(x) ~ exp(-x^2 / (2 sigma^2)) on the integers, shifted: the loss is (s^2 + 2 s x) / (2 sigma^2), x ~ P."""
    v, s = arb(sigma) ** 2, sensitivity
    reach = int(sigma * (2 * 300) ** 0.5) + 3
    weights = [(-(arb(x) ** 2) / (2 * v)).exp() for x in range(-reach, reach + 1)]
    norm = sum(weights, arb(0))
    powers = lattice_power([w / norm for w in weights], count)
    return [((count * s * s + 2 * s * (k - reach * count)) / (2 * v), w) for k, w in enumerate(powers)]


def boxes(parameters: Sequence[tuple[float, float]]) -> list[Atom]:
    """Composition of (epsilon_i, delta_i) black boxes: 2^n atoms, the leaked mass left out (it sits at infinity)."""
    atoms: list[Atom] = [(arb(0), arb(1))]
    for epsilon, delta in parameters:
        e = arb(epsilon)
        up = (1 - arb(delta)) / (1 + (-e).exp())
        down = (1 - arb(delta)) / (1 + e.exp())
        atoms = [atom for loss, p in atoms for atom in ((loss + e, p * up), (loss - e, p * down))]
    return atoms


def box(epsilon: float, delta: float, count: int) -> list[Atom]:
    """count-fold composition of one (epsilon, delta) black box on its lattice. [Kairouz et al. 2015, Thm 3.3]"""
    kept = (1 - arb(delta)) ** count
    return [(loss, p * kept) for loss, p in randomized_response(epsilon, count)]


def sums(first: Sequence[Atom], second: Sequence[Atom]) -> list[Atom]:
    """The law of a sum of two independent finite losses."""
    return [(a + b, p * w) for (a, p), (b, w) in itertools.product(first, second)]


# ---- Laplace ---------------------------------------------------------------------------------------------------------


def laplace(b: float, count: int, epsilon: arb) -> arb:
    """delta of count Laplace releases of scale b, for any real epsilon."""
    return laplaces([(b, count)], epsilon)


def laplaces(releases: Sequence[tuple[float, int]], epsilon: arb) -> arb:
    r"""delta of Laplace releases, given as (scale b, count), by residues, for any real epsilon.

    With a = 1/b, E exp(zL) = (e^{az}(z+1) + e^{-a(z+1)} z) / (2z+1); powers are binomial sums, and a term with k
    factors of the second kind among n in all has exponent sum_i a_i (n_i - 2 k_i) - epsilon. In
    (1/2 pi i) int exp(-epsilon z) (...) / (z(z+1)) dz  it closes to the right (giving zero) when that is negative and
    to the left otherwise, over the pole of order n at -1/2, the simple pole at 0 (k = 0) and at -1 (k = n).
    """
    n = sum(count for _, count in releases)
    with ctx.workprec(PRECISION + 6 * n + 48 * len(releases)):  # the terms are that much larger than their sum
        scales = [1 / arb(b) for b, _ in releases]
        counts = [count for _, count in releases]
        if epsilon < -sum((a * count for a, count in zip(scales, counts, strict=True)), arb(0)):
            return 1 - epsilon.exp()
        total = arb(0)
        for seconds in itertools.product(*(range(count + 1) for count in counts)):
            exponent, weight, k = -epsilon, arb(1), sum(seconds)
            for a, count, second in zip(scales, counts, seconds, strict=True):
                exponent += a * (count - 2 * second)
                weight *= arb.bin_uiui(count, second) * (-a * second).exp()
            if exponent > 0:
                total += weight * (_residue(n, k, exponent) + (1 if k == 0 else 0))
    if total != 0 and total.rel_accuracy_bits() < 80:
        raise ArithmeticError(f"only {total.rel_accuracy_bits()} bits are left of the sum of residues")
    return total


def _residue(n: int, k: int, exponent: arb) -> arb:
    """Residue at w = 0 of exp(exponent (w - 1/2)) (w + 1/2)^{n-k-1} (w - 1/2)^{k-1} / (2w)^n."""
    rational = _rational(n, k)
    coefficient, result = arb(1), arb(0)
    for j in range(n):
        result += coefficient * rational[n - 1 - j]
        coefficient = coefficient * exponent / (j + 1)
    return result * (-exponent / 2).exp() / arb(2) ** n


@cache
def _rational(n: int, k: int) -> tuple[arb, ...]:
    """Taylor coefficients of (w + 1/2)^{n-k-1} (w - 1/2)^{k-1} up to w^{n-1}."""
    previous, ctx.cap = ctx.cap, n
    try:
        half = arb(1) / 2
        plus, minus = arb_series([half, 1]), arb_series([-half, 1])
        series = (
            plus ** (n - k - 1) * minus ** (k - 1)
            if 0 < k < n
            else (plus ** (n - 1) / minus if k == 0 else minus ** (n - 1) / plus)
        )
        return tuple(series[j] for j in range(n))
    finally:
        ctx.cap = previous


def laplaces_and_atoms(releases: Sequence[tuple[float, int]], atoms: Sequence[Atom], epsilon: arb) -> arb:
    """Laplace releases together with a finite law: the mean of the Laplace delta over the atoms."""
    total = sum((p for _, p in atoms), arb(0))
    return (1 - total) + sum((p * laplaces(releases, epsilon - loss) for loss, p in atoms), arb(0))


def normal_tail(x: arb) -> arb:
    """P(N(0,1) > x)."""
    return (x / arb(2).sqrt()).erfc() / 2


def gaussian(mu: arb, epsilon: arb) -> arb:
    """Phi(mu/2 - epsilon/mu) - exp(epsilon) Phi(-mu/2 - epsilon/mu). [Balle and Wang 2018, Thm 8]"""
    return normal_tail(epsilon / mu - mu / 2) - epsilon.exp() * normal_tail(epsilon / mu + mu / 2)
