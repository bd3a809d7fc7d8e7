"""The references checked against each other: closed forms, nested quadrature, finite sums, contours, known digits."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path

import pytest
from flint import acb, arb

from reference import contour, convolution, direct, exact, laws, tables, truth
from reference.quadrature import legendre

DIRECTIONS = ("remove", "add")
TABLES = sorted(path for path in Path(__file__).parent.glob("*.json") if path.stem != "calibration")


def close(a: arb, b: arb, tolerance: float) -> bool:
    return abs(float(((a - b) / b).mid())) <= tolerance


def by_contour(
    mechanism: truth.Mechanism, direction: str, epsilon: float, lean: float, tolerance: float = 1e-16
) -> arb:
    parts = truth.parts([mechanism], direction)
    t = contour.saddle(parts, epsilon=epsilon)
    line = contour.line(parts, epsilon=epsilon, abscissa=0.8 * t, slope=lean, tolerance=tolerance)
    return line.delta(arb(epsilon))


@pytest.mark.parametrize(("sigma", "rate"), [(1.0, 0.01), (0.3, 0.2), (10.0, 0.5)])
def test_moments_of_whole_orders_are_binomial_sums(sigma: float, rate: float) -> None:
    """E_Q (1 - q + q r)^n = sum C(n,k) (1-q)^(n-k) q^k exp(k(k-1)/(2 sigma^2)): no quadrature."""
    q, v = arb(rate), 1 / arb(sigma) ** 2
    for n in (1, 2, 5):
        exactly = sum(
            (math.comb(n, k) * (1 - q) ** (n - k) * q**k * (k * (k - 1) * v / 2).exp() for k in range(n + 1)), arb(0)
        )
        remove = laws.moment(laws.SampledGaussian(sigma, rate, "remove"), acb(n - 1)).real
        add = laws.moment(laws.SampledGaussian(sigma, rate, "add"), acb(-n)).real
        assert close(remove, exactly, 1e-33)
        assert close(add, exactly, 1e-33)


@pytest.mark.parametrize("order", [24, 40])
def test_moments_off_the_axis_do_not_depend_on_the_rule(order: int) -> None:
    for z in (acb(3, 5), acb(6, 30)):
        one = laws.moment(laws.SampledGaussian(0.8, 0.05, "remove"), z)
        other = laws.moment(laws.SampledGaussian(0.8, 0.05, "remove", order=order), z)
        assert float(abs(one - other).mid()) < 1e-25 * float(abs(one).mid())


def test_sampled_laplace_moment_at_rate_one_is_the_closed_form() -> None:
    z = acb(2, 7)
    assert close(
        abs(laws.moment(laws.SampledLaplace(1.5, 1.0, "remove"), z)), abs(laws.moment(laws.Laplace(1.5), z)), 1e-33
    )


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_once_closed_form_is_the_contour(direction: str) -> None:
    mechanism = {"kind": "sampled_gaussian", "noise_multiplier": 5.0, "rate": 0.5}
    lean = 0.3 if direction == "remove" else -0.3
    found = by_contour(mechanism, direction, 0.05, lean)
    assert close(found, direct.sampled_gaussian(5.0, 0.5, direction, arb(0.05)), 1e-14)


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize(("count", "panels", "order", "tolerance"), [(2, 32, 20, 1e-14), (3, 6, 10, 1e-8)])
def test_twice_and_thrice_by_nested_quadrature(
    direction: str, count: int, panels: int, order: int, tolerance: float
) -> None:
    mechanism = {"kind": "sampled_gaussian", "noise_multiplier": 2.0, "rate": 0.5, "count": count}
    nested = direct.sampled_gaussian_repeated(2.0, 0.5, direction, arb(0.3), count=count, panels=panels, order=order)
    lean = 0.3 if direction == "remove" else -0.3
    assert close(nested, by_contour(mechanism, direction, 0.3, lean), tolerance)


def test_gaussian_closed_form_is_the_contour() -> None:
    mechanism = {"kind": "gaussian", "noise_multiplier": 3.0, "count": 9}
    assert close(by_contour(mechanism, "remove", 2.0, 0.0), exact.gaussian(arb(1), arb(2)), 1e-14)


def test_sampling_everyone_is_not_sampling() -> None:
    for epsilon, direction in itertools.product((-0.5, 0.7), DIRECTIONS):
        assert close(
            direct.sampled_gaussian(1.3, 1.0, direction, arb(epsilon)),
            exact.gaussian(1 / arb(1.3), arb(epsilon)),
            1e-30,
        )
        assert close(
            direct.sampled_laplace(1.3, 1.0, direction, arb(epsilon)), exact.laplace(1.3, 1, arb(epsilon)), 1e-30
        )


def test_laplace_once_is_the_closed_form_and_its_pure_bound_is_reached() -> None:
    assert close(exact.laplace(2.0, 1, arb("0.1")), 1 - ((arb("0.1") - arb("0.5")) / 2).exp(), 1e-30)
    assert exact.laplace(2.0, 3, arb("1.5000001")) == 0
    assert exact.laplace(2.0, 3, arb("1.499")) > 0


def test_laplace_twice_is_the_mean_of_once() -> None:
    """Two releases by conditioning on the first: its atoms exactly, its density by Gauss–Legendre between the kinks."""
    a, epsilon = arb(1) / 2, arb("0.3")
    mean = exact.laplace(2.0, 1, epsilon - a) / 2 + (-a).exp() / 2 * exact.laplace(2.0, 1, epsilon + a)
    nodes, weights = legendre(40)
    edges = [-a, epsilon - a, a]
    for low, high in itertools.pairwise(edges):
        for x, w in zip(nodes, weights, strict=True):
            loss = (low + high) / 2 + (high - low) / 2 * x
            mean += w * (high - low) / 2 * ((loss - a) / 2).exp() / 4 * exact.laplace(2.0, 1, epsilon - loss)
    assert close(exact.laplace(2.0, 2, epsilon), mean, 1e-30)


def test_laplaces_of_equal_scales_are_one_kind_and_of_almost_equal_scales_almost() -> None:
    whole = exact.laplace(1.5, 7, arb(2))
    assert close(exact.laplaces([(1.5, 3), (1.5, 4)], arb(2)), whole, 1e-30)
    assert close(exact.laplaces([(1.5, 3), (1.5 * (1 + 2**-40), 4)], arb(2)), whole, 1e-11)


def test_laplaces_of_two_scales_are_the_mean_of_one_over_the_other() -> None:
    a, epsilon = arb(1), arb("0.7")
    mean = exact.laplace(3.0, 2, epsilon - a) / 2 + (-a).exp() / 2 * exact.laplace(3.0, 2, epsilon + a)
    nodes, weights = legendre(40)
    kinks = sorted(x for x in (-a, *(epsilon - arb(k) / 3 for k in (-2, 0, 2)), a) if -a <= x <= a)
    for low, high in itertools.pairwise(kinks):
        for x, w in zip(nodes, weights, strict=True):
            loss = (low + high) / 2 + (high - low) / 2 * x
            mean += w * (high - low) / 2 * ((loss - a) / 2).exp() / 4 * exact.laplace(3.0, 2, epsilon - loss)
    assert close(exact.laplaces([(3.0, 2), (1.0, 1)], epsilon), mean, 1e-28)


def test_many_laplace_releases_by_contour() -> None:
    """Two hundred: the atoms' share has faded to 1e-22, so the contour sees a smooth law."""
    found = by_contour({"kind": "laplace", "noise_multiplier": 1.0, "count": 200}, "remove", 80.0, 0.0, 1e-18)
    assert close(found, exact.laplace(1.0, 200, arb(80)), 1e-13)


@pytest.mark.parametrize(("b", "count"), [(2.0, 2), (3.0, 12)])
def test_laplace_in_real_space_is_the_sum_of_residues(b: float, count: int) -> None:
    found = convolution.profile(b, 1.0, "remove", count, order=20)
    for share in (-0.3, 0.1, 0.45, 0.8):
        epsilon = arb(share) * count / arb(b)
        assert close(found(epsilon), exact.laplace(b, count, epsilon), 1e-18)


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_sampled_laplace_once_in_real_space_is_the_closed_form(direction: str) -> None:
    found = convolution.profile(2.0, 0.1, direction, 1, order=24)
    for epsilon in (arb("-0.01"), arb("0.001"), arb("0.01")):
        assert close(found(epsilon), direct.sampled_laplace(2.0, 0.1, direction, epsilon), 1e-16)


@pytest.mark.slow
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_sampled_laplace_in_real_space_is_the_contour(direction: str) -> None:
    found = convolution.profile(1.0, 0.3, direction, 300, order=40)(arb(9))
    mechanism = {"kind": "sampled_laplace", "noise_multiplier": 1.0, "rate": 0.3, "count": 300}
    assert close(found, by_contour(mechanism, direction, 9.0, 0.0, 1e-22), 1e-16)


def test_lattice_sums_against_enumeration() -> None:
    e = arb(0.4)
    for options in (2, 5):
        once = exact.randomized_response(0.4, 1, options)
        thrice = exact.sums(exact.sums(once, once), once)
        for epsilon in (arb(0), arb("0.5"), arb("1.1")):
            listed = exact.hockey_stick(thrice, epsilon)
            assert close(exact.hockey_stick(exact.randomized_response(0.4, 3, options), epsilon), listed, 1e-30)
    assert close(
        exact.hockey_stick(exact.boxes([(0.4, 1e-3)] * 6), e), exact.hockey_stick(exact.box(0.4, 1e-3, 6), e), 1e-30
    )


def test_discrete_laws_are_laws_of_a_pair() -> None:
    """Weights sum to one and E exp(-L) = 1, since both measures have the same support."""
    for law in (
        exact.discrete_gaussian(1.5, 1, 3),
        exact.discrete_gaussian(4.0, 2, 2),
        exact.discrete_laplace(1.5, 3, 4),
        exact.staircase(0.7, 0.3, 5),
        exact.staircase(0.7, 0.8, 5),
        exact.randomized_response(0.7, 4, 3),
    ):
        assert close(sum((p for _, p in law), arb(0)), arb(1), 1e-40)
        assert close(sum((p * (-loss).exp() for loss, p in law), arb(0)), arb(1), 1e-40)


def test_finite_laws_by_direct_sums() -> None:
    """delta of one release as sum (P(x) - e^epsilon Q(x))_+ over the integers, from the definition of the noise."""
    epsilon = arb("0.2")
    for sigma, s in ((1.5, 1), (4.0, 2)):
        mass = {x: (-(arb(x) ** 2) / (2 * arb(sigma) ** 2)).exp() for x in range(-120, 121)}
        total = sum(mass.values(), arb(0))
        gaps = (mass[x] - epsilon.exp() * mass.get(x + s, arb(0)) for x in mass if x + s in mass)
        listed = sum((g for g in gaps if g > 0), arb(0)) / total
        assert close(exact.hockey_stick(exact.discrete_gaussian(sigma, s, 1), epsilon), listed, 1e-30)
    r = (-1 / arb(3)).exp()
    gaps = ((r ** abs(x) - epsilon.exp() * r ** abs(x - 2)) for x in range(-400, 401))
    listed = sum((g for g in gaps if g > 0), arb(0)) * (1 - r) / (1 + r)
    assert close(exact.hockey_stick(exact.discrete_laplace(3.0, 2, 1), epsilon), listed, 1e-30)


def test_digits_of_an_independent_trial() -> None:
    """Seven digits from a plain double-precision contour, as the mathematics notes of the design record them."""
    found = {
        row["name"]: row["epsilon"]["larger"] for row in json.loads(_table("sampled_gaussian")) if "epsilon" in row
    }
    assert float(found["ordinary 1"]) == pytest.approx(2.375838, abs=1e-6)
    assert float(found["ordinary 2"]) == pytest.approx(1.8282367, abs=1e-7)
    assert float(found["ordinary 4"]) == pytest.approx(2.015266, abs=1e-6)


def test_stored_gaussians_and_their_mixtures_with_finite_laws_are_closed_forms() -> None:
    """Rows found by contour, against the mean of the Gaussian closed form over the atoms of the other mechanisms."""
    checked = 0
    for row in tables.rows("gaussian", "mixtures"):
        rest = [m for m in row.mechanisms if m["kind"] != "gaussian"]
        if len(rest) == len(row.mechanisms) or any(m["kind"] not in truth.LATTICE for m in rest):
            continue
        gaussians = [m for m in row.mechanisms if m not in rest]
        variance = sum(
            (int(str(m.get("count", 1))) / arb(float(str(m["noise_multiplier"]))) ** 2 for m in gaussians), arb(0)
        )
        law = [(arb(0), arb(1))]
        for m in rest:
            law = exact.sums(law, truth.atoms(m))
        epsilon = arb(str(row.larger)) if row.epsilon is None else arb(row.epsilon)
        delta = arb(row.delta) if row.delta is not None else arb(str(row.larger))
        leaked = 1 - sum((p for _, p in law), arb(0))
        found = sum((p * exact.gaussian(variance.sqrt(), epsilon - loss) for loss, p in law), leaked)
        assert close(found, delta, 1e-17)
        checked += 1
    assert checked >= 20


def test_a_stored_row_is_found_again() -> None:
    row = next(r for r in json.loads(_table("sampled_gaussian")) if r["name"] == "ordinary 4")
    line_delta = by_contour(row["mechanisms"][0], "remove", float(row["epsilon"]["remove"]), 0.1)
    assert close(line_delta, arb(row["given"]["delta"]), 1e-13)


@pytest.mark.parametrize("path", TABLES, ids=lambda p: p.stem)
def test_tables_are_whole(path: Path) -> None:
    rows = json.loads(path.read_text(encoding="utf-8"))
    assert len({row["name"] for row in rows}) == len(rows)
    for row in rows:
        found = row["epsilon"] if "delta" in row["given"] else row["delta"]
        digits = [float(found[side]) for side in ("remove", "add", "larger") if found[side] is not None]
        assert digits[-1] == max(digits)
        assert all(math.isfinite(d) and d >= 0 for d in digits)


def _table(name: str) -> str:
    return Path(__file__).with_name(f"{name}.json").read_text(encoding="utf-8")
