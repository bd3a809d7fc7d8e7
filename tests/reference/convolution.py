"""delta of repeated (sampled) Laplace releases in real space: no transform, no contour.

The loss of one release has an atom at each end of [B, A] and an analytic density between. So the profile delta_m of m
releases is analytic on each of the m pieces [iA + (m-i)B, (i+1)A + (m-i-1)B], 1 - exp(epsilon) below and zero above.
Conditioning on one more release,

    delta_{m+1}(e) = p_A delta_m(e - A) + p_B delta_m(e - B) + int_B^A f(l) delta_m(e - l) dl,

and a point of piece i of delta_{m+1} draws only on pieces i-1 and i of delta_m, at places that depend on neither i nor
m. With the profile held by its values at Legendre points, one more release is two fixed matrices.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from flint import arb, arb_mat

from reference.laws import SampledLaplace
from reference.quadrature import legendre

ORDER = 64
"""Points of a piece. The density is analytic beyond the piece by more than a seventh of its width when 1/b <= 1."""


@dataclass(frozen=True)
class Profile:
    """delta at any epsilon: the pieces of the repeated release as columns of values at the Legendre points."""

    bottom: arb
    width: arb
    pieces: arb_mat

    def __call__(self, epsilon: arb) -> arb:
        place = (epsilon - self.bottom) / self.width
        if not place > 0:
            return 1 - epsilon.exp()
        index = int(float(place.mid()))
        if index >= self.pieces.ncols():
            return arb(0)
        row = _interpolation(2 * (place - index) - 1, self.pieces.nrows())
        return sum((c * self.pieces[k, index] for k, c in enumerate(row)), arb(0)).mid()


def profile(b: float, rate: float, direction: str, count: int, *, order: int = ORDER) -> Profile:
    """The profile of ``count`` Poisson-sampled Laplace releases, one direction of the add-remove pair."""
    law = SampledLaplace(b, rate, direction)
    q, sign = arb(rate), 1 if direction == "remove" else -1

    def loss(u: arb) -> arb:
        return sign * (1 - q + q * u.exp()).log()

    def weight(u: arb, mass: arb) -> arb:
        return mass * (1 - q + q * u.exp()) if sign > 0 else mass

    (low, low_mass), (high, high_mass) = law.atoms if sign > 0 else law.atoms[::-1]
    bottom, top = loss(low), loss(high)
    width = top - bottom
    nodes, gauss = legendre(order)

    keep = [[arb(0)] * order for _ in nodes]  # what piece i of the next profile takes from piece i of this one
    lift = [[arb(0)] * order for _ in nodes]  # and from piece i - 1
    for j, node in enumerate(nodes):
        keep[j][j] += weight(low, low_mass)
        lift[j][j] += weight(high, high_mass)
        split = _where(q, bottom + width * (node + 1) / 2, sign)
        for start, stop, matrix, shift in ((low, split, keep, 0), (split, high, lift, 1)):
            for a, c in itertools.pairwise(_cut(start, stop)):
                middle, half = (a + c) / 2, (c - a) / 2
                for x, w in zip(nodes, gauss, strict=True):
                    u = middle + half * x
                    place = (node + 1) / 2 - (loss(u) - bottom) / width + shift
                    mass = weight(u, law.density(u)) * w * abs(half)
                    for k, c_k in enumerate(_interpolation(2 * place - 1, order)):
                        matrix[j][k] += mass * c_k
    stay = arb_mat(order, order, [x.mid() for row in keep for x in row])
    rise = arb_mat(order, order, [x.mid() for row in lift for x in row])

    # the profile of no release: 1 - e^epsilon below zero, nothing above; the piece below the bottom enters each step
    pieces = arb_mat(order, 0, [])
    for m in range(count):
        below = [1 - (bottom * (m + 1) + width * (x + 1) / 2 - top).exp() for x in nodes]
        columns = [below, *([pieces[k, i] for k in range(order)] for i in range(m)), [arb(0)] * order]
        before = arb_mat(order, m + 1, [columns[i][k] for k in range(order) for i in range(m + 1)])
        after = arb_mat(order, m + 1, [columns[i + 1][k] for k in range(order) for i in range(m + 1)])
        pieces = _middles(rise * before + stay * after)
    return Profile(bottom * count, width, pieces)


def _where(q: arb, loss: arb, sign: int) -> arb:
    """The log-ratio u at which the loss is taken."""
    return (((sign * loss).exp() - 1 + q) / q).log()


def _cut(start: arb, stop: arb) -> list[arb]:
    """Panels no longer than one."""
    number = int(abs(float((stop - start).mid()))) + 1
    return [start + (stop - start) * k / number for k in range(number + 1)]


def _interpolation(x: arb, order: int) -> list[arb]:
    """Values at x of the Lagrange polynomials of the Legendre points, in barycentric form."""
    nodes, gauss = legendre(order)
    gaps = [x - node for node in nodes]
    exact = [k for k, gap in enumerate(gaps) if gap.contains(0)]
    if exact:
        return [arb(1) if k == exact[0] else arb(0) for k in range(order)]
    terms = [
        (-1) ** k * ((1 - node * node) * w).sqrt() / gap
        for k, (node, w, gap) in enumerate(zip(nodes, gauss, gaps, strict=True))
    ]
    total = sum(terms, arb(0))
    return [t / total for t in terms]


def _middles(matrix: arb_mat) -> arb_mat:
    return arb_mat(matrix.nrows(), matrix.ncols(), [x.mid() for x in matrix.entries()])
