"""Thresholded histograms: exact guarantees of tiny cases, the noise that is drawn, and how the three compare."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest

from discreet import DiscreetError, InvalidArgument
from discreet.mechanisms import GaussianThreshold, KeySelection, LaplaceThreshold, Mechanism, StableHistogram
from discreet.mechanisms.thresholding import Thresholding
from noise.frequencies import p_value

ALPHA = 1e-9
ALL = [StableHistogram, LaplaceThreshold, GaussianThreshold]
HIDDEN = None


def noise_law(made: Thresholding, reach: int) -> dict[int, mpmath.mpf]:
    """The law of the noise by its definition, to 40 digits."""
    support = range(-reach, reach + 1)
    if isinstance(made, GaussianThreshold):
        scale = mpmath.mpf(made.scale.numerator) / made.scale.denominator
        edge = lambda k: mpmath.ncdf((k - mpmath.mpf(1) / 2) / scale)
        return {k: edge(k + 1) - edge(k) if k < 0 else edge(-k + 1) - edge(-k) for k in support}
    epsilon = mpmath.mpf(made.key_epsilon)
    end = made.threshold - 1 if isinstance(made, StableHistogram) else 10**6
    weights = {k: mpmath.exp(-epsilon * abs(k)) for k in support if abs(k) <= end}
    total = (
        mpmath.fsum(weights.values())
        if isinstance(made, StableHistogram)
        else (1 + mpmath.exp(-epsilon)) / (1 - mpmath.exp(-epsilon))
    )
    return {k: weight / total for k, weight in weights.items()}


def shown_law(made: Thresholding, noise: dict[int, mpmath.mpf], n: int) -> dict[int | None, mpmath.mpf]:
    """The law of what is shown of a key with this count."""
    if n == 0:
        return {HIDDEN: mpmath.mpf(1)}
    law = {n + z: p for z, p in noise.items() if n + z >= made.threshold}
    return {HIDDEN: 1 - mpmath.fsum(law.values()), **law}


def distance(P: dict[Any, mpmath.mpf], Q: dict[Any, mpmath.mpf], epsilon: float) -> mpmath.mpf:
    growth = mpmath.exp(epsilon)
    return mpmath.fsum(max(mpmath.mpf(0), p - growth * Q.get(y, 0)) for y, p in P.items())


def both(P: dict[Any, mpmath.mpf], Q: dict[Any, mpmath.mpf]) -> dict[Any, mpmath.mpf]:
    return {(x, y): p * q for x, p in P.items() for y, q in Q.items()}


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("counts", [(0, 0), (0, 3), (1, 5), (4, 9), (9, 9), (12, 30)])
def test_a_person_with_two_keys_changes_what_is_shown_by_no_more_than_the_cost(
    kind: type[Thresholding], counts: tuple[int, int]
) -> None:
    made = kind(epsilon=2.0, delta=0.02, keys_per_unit=2)  # type: ignore[call-arg]
    with mpmath.workdps(40):
        noise = noise_law(made, 45)
        missing = 1 - mpmath.fsum(noise.values())
        Q = both(*(shown_law(made, noise, n) for n in counts))
        P = both(*(shown_law(made, noise, n + 1) for n in counts))
        for epsilon in (0.0, 1.0, 2.0):
            allowed = made.cost.delta(epsilon) + 2 * float(missing)
            assert distance(P, Q, epsilon) <= allowed
            assert distance(Q, P, epsilon) <= allowed
        assert made.cost.delta(2.0) <= 0.02


@pytest.mark.parametrize("kind", ALL)
def test_replacing_a_person_changes_what_is_shown_by_no_more_than_the_cost(kind: type[Thresholding]) -> None:
    made = kind(epsilon=2.0, delta=0.02, adjacency="replace-one")  # type: ignore[call-arg]
    with mpmath.workdps(40):
        noise = noise_law(made, 45)
        missing = 1 - mpmath.fsum(noise.values())
        for n, m in ((0, 0), (0, 4), (3, 3), (8, 12)):
            P = both(shown_law(made, noise, n + 1), shown_law(made, noise, m))
            Q = both(shown_law(made, noise, n), shown_law(made, noise, m + 1))
            for epsilon in (0.0, 1.0, 2.0):
                assert distance(P, Q, epsilon) <= made.cost.delta(epsilon) + 2 * float(missing)


def test_the_cost_of_the_stable_histogram_is_exact_for_one_key() -> None:
    made = StableHistogram(epsilon=1.0, delta=0.01)
    with mpmath.workdps(40):
        noise = noise_law(made, made.threshold)
        for n in (made.threshold * 3, 0):  # a large count, and a key of one person alone
            P, Q = shown_law(made, noise, n + 1), shown_law(made, noise, n)
            assert float(distance(P, Q, 1.0)) == pytest.approx(made.key_delta, rel=1e-11)


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 1.0, 4.0])
def test_the_stable_histogram_shows_exactly_what_the_optimal_selection_keeps(epsilon: float) -> None:
    made = StableHistogram(epsilon=epsilon, delta=1e-6)
    best = KeySelection(key_epsilon=epsilon, key_delta=made.key_delta)
    for n in (0, 1, 2, made.threshold // 2, made.threshold - 1, made.threshold, made.threshold + 3, 2 * made.threshold):
        assert made.probability_of_keeping(n) == pytest.approx(best.probability_of_keeping(n), rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("kind", ALL)
def test_a_key_is_shown_with_its_probability_and_the_noise_has_its_law(kind: type[Thresholding]) -> None:
    made = kind(epsilon=1.5, delta=0.01, keys_per_unit=2)  # type: ignore[call-arg]
    n, draws = made.threshold, 100_000
    keys, shown = made.release((np.arange(draws), np.full(draws, n)))
    assert (shown >= made.threshold).all()
    assert (np.diff(keys) > 0).all()
    outcomes = [*shown.tolist(), *[HIDDEN] * (draws - shown.size)]
    right = {y: float(p) for y, p in shown_law(made, noise_law(made, 60), n).items()}
    wrong = {y: float(p) for y, p in shown_law(made, noise_law(made, 60), n + 1).items()}
    assert right[HIDDEN] == pytest.approx(1 - made.probability_of_keeping(n), rel=1e-9)
    assert p_value(outcomes, right) > ALPHA
    assert p_value(outcomes, wrong) < ALPHA


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_the_error_is_the_smallest_that_holds(kind: type[Thresholding], confidence: float) -> None:
    made = kind(epsilon=1.0, delta=1e-3)  # type: ignore[call-arg]
    law = noise_law(made, 80)
    e = int(made.error(confidence))
    beyond = lambda reach: float(1 - mpmath.fsum(p for z, p in law.items() if abs(z) <= reach))
    assert beyond(e) <= 1 - confidence + 1e-12
    assert beyond(e - 1) > 1 - confidence


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("keys", [1, 5, 50])
def test_the_budget_is_kept_and_used(kind: type[Thresholding], keys: int) -> None:
    made = kind(epsilon=1.0, delta=1e-6, keys_per_unit=keys)  # type: ignore[call-arg]
    assert made.cost.delta(1.0) <= 1e-6
    assert made.cost.delta(1.0) > 1e-7
    lower = {**made.fields(), "threshold": made.threshold - 1}
    assert kind(**lower).cost.delta(1.0) > 1e-6 or kind is GaussianThreshold


def test_gaussian_noise_shows_more_for_many_keys_and_geometric_noise_for_few() -> None:
    few = {kind: kind(epsilon=1.0, delta=1e-6).threshold for kind in ALL}  # type: ignore[call-arg]
    many = {kind: kind(epsilon=1.0, delta=1e-6, keys_per_unit=100).threshold for kind in ALL}  # type: ignore[call-arg]
    assert few[StableHistogram] <= few[LaplaceThreshold] < few[GaussianThreshold]
    assert many[GaussianThreshold] < many[StableHistogram] / 2 < many[LaplaceThreshold] / 4


@pytest.mark.parametrize("kind", ALL)
def test_mappings_give_mappings_in_an_order_of_their_own(kind: type[Thresholding]) -> None:
    made = kind(epsilon=1.0, delta=1e-6)  # type: ignore[call-arg]
    released = made.release({"pear": 9000, "apple": 8000, "fig": 0})
    assert list(released) == ["apple", "pear"]
    assert abs(released["pear"] - 9000) < 100
    assert made.release({}) == {}


@pytest.mark.parametrize("kind", ALL)
def test_it_is_stored_without_loss(kind: type[Thresholding]) -> None:
    made = kind(epsilon=1.0, delta=1e-6, keys_per_unit=3, adjacency="replace-one")  # type: ignore[call-arg]
    assert Mechanism.from_dict(made.to_dict()) == made
    assert Mechanism.from_dict(made.to_dict()).cost == made.cost


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"epsilon": 1.0},
        {"epsilon": 0, "delta": 1e-6},
        {"epsilon": 1.0, "delta": 1.0},
        {"epsilon": 1.0, "delta": float("nan")},
        {"epsilon": 1.0, "delta": 1e-6, "threshold": 5},
        {"threshold": 5},
        {"epsilon": 1.0, "delta": 1e-6, "keys_per_unit": -1},
        {"epsilon": 1.0, "delta": 1e-6, "adjacency": 3},
    ],
)
def test_bad_parameters_are_refused(kind: type[Thresholding], arguments: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument):
        kind(**arguments)


@pytest.mark.parametrize("own", [{"threshold": 1}, {"threshold": 2.5}, {"threshold": 2**60}])
def test_bad_thresholds_are_refused(own: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument):
        StableHistogram(key_epsilon=1.0, **own)
    with pytest.raises(InvalidArgument):
        GaussianThreshold(noise_multiplier=1.0, **own)
    with pytest.raises(InvalidArgument):
        GaussianThreshold(noise_multiplier=1e9, threshold=5)


@pytest.mark.parametrize("value", [None, {"a": -1}, {"a": 0.5}, (["a", "a"], [1, 1]), ([1], [1, 2])])
def test_bad_counts_are_refused(value: Any) -> None:
    for kind in ALL:
        with pytest.raises(DiscreetError):
            kind(epsilon=1.0, delta=1e-6).release(value)  # type: ignore[call-arg]


def test_the_largest_counts_do_not_overflow() -> None:
    released = GaussianThreshold(epsilon=1.0, delta=1e-6).release({"a": 2**63 - 1})
    assert 2**61 < released["a"] < 2**63


def test_tiny_levels_do_not_lose_their_digits() -> None:
    made = StableHistogram(key_epsilon=4e-9, threshold=500_001)  # nearly uniform on -500000..500000
    with mpmath.workdps(50):
        step = mpmath.exp(-mpmath.mpf(4e-9))
        exact = step**500_000 * (1 - step) / (1 + step - 2 * step**500_001)
    assert made.key_delta == pytest.approx(float(exact), rel=1e-9)
    assert mpmath.mpf(made.key_delta) >= exact


def test_a_threshold_far_inside_the_noise_is_refused_instead_of_drawn_for_ever():
    with pytest.raises(InvalidArgument, match="threshold = 2 "):
        StableHistogram(key_epsilon=1e-9, threshold=2)
