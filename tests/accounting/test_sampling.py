"""Samples of every kind: closed forms, all outcomes of small mechanisms, and attempts to get below."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr

from discreet.accounting import Cost
from discreet.accounting.discretise import discretise
from discreet.accounting.pair import Direction
from discreet.accounting.pairs.atoms import AtomsPair
from discreet.accounting.pairs.dots import table_through
from discreet.accounting.pairs.triangle import fixed_size_below
from discreet.accounting.pairs.two_sided import TwoSidedGaussianPair
from discreet.accounting.shuffled_batches import delta_at_least, epsilon_at_least
from discreet.errors import InvalidArgument, StorageError

pytestmark = pytest.mark.filterwarnings("ignore::discreet.errors.WideBracket")

REPLACE = "replace-one"
EPSILONS = (0.0, 0.02, 0.1, 0.3, 0.8)


def hockey_stick(p: np.ndarray, q: np.ndarray, epsilon: float) -> float:
    return float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum())


def repeated(p: np.ndarray, times: int) -> np.ndarray:
    """The law of `times` independent outcomes."""
    law = p
    for _ in range(times - 1):
        law = np.multiply.outer(law, p).ravel()
    return law


# ------------------------------------------------------------------------------------------------ Poisson, any pair


@pytest.mark.parametrize("rate", [0.01, 0.3, 0.9])
@pytest.mark.parametrize("times", [1, 4])
@pytest.mark.parametrize(
    ("cost", "p", "q"),
    [
        (Cost.randomized_response(1.0), [math.e, 1.0], [1.0, math.e]),
        (Cost.randomized_response(0.7, options=4), [math.exp(0.7), 1, 1, 1], [1, math.exp(0.7), 1, 1]),
        (Cost.from_pair([0.6, 0.3, 0.1], [0.1, 0.5, 0.4]), [0.6, 0.3, 0.1], [0.1, 0.5, 0.4]),
        (Cost.from_pair([0.6, 0.4, 0.0], [0.1, 0.5, 0.4]), [0.6, 0.4, 0.0], [0.1, 0.5, 0.4]),
        (2 * Cost.randomized_response(0.5), np.outer([math.exp(0.5), 1], [math.exp(0.5), 1]).ravel(),
         np.outer([1, math.exp(0.5)], [1, math.exp(0.5)]).ravel()),
        (Cost.randomized_response(0.5) + Cost.from_pair([0.8, 0.2], [0.3, 0.7]),
         np.outer([math.exp(0.5), 1], [0.8, 0.2]).ravel(), np.outer([1, math.exp(0.5)], [0.3, 0.7]).ravel()),
    ],
)  # fmt: skip
def test_finite_mechanisms_agree_with_all_their_outcomes(
    cost: Cost, p: list[float], q: list[float], rate: float, times: int
) -> None:
    with_record, without = np.asarray(p, dtype=float), np.asarray(q, dtype=float)
    with_record, without = with_record / with_record.sum(), without / without.sum()
    mixed = rate * with_record + (1 - rate) * without
    one, other = repeated(mixed, times), repeated(without, times)
    sampled = times * cost.sampled(rate)
    for epsilon in EPSILONS:
        truth = max(hockey_stick(one, other, epsilon), hockey_stick(other, one, epsilon))
        low, high = sampled.bounds(epsilon=epsilon)
        assert low <= truth * (1 + 1e-12) + 1e-15
        assert truth <= high * (1 + 1e-12) + 1e-15
        assert high == pytest.approx(truth, rel=1e-6, abs=1e-12)


BASES = [
    Cost.gaussian(0.8),
    Cost.laplace(0.7),
    Cost.discrete_gaussian(1.2, sensitivity=2),
    Cost.discrete_laplace(0.9, sensitivity=3),
    Cost.staircase(1.3),
    Cost.randomized_response(1.1, options=5),
    Cost.exponential_mechanism(1.0),
    Cost.approximate(0.5, 1e-3),
    Cost.from_pair([0.6, 0.3, 0.1], [0.1, 0.5, 0.4]),
    2 * Cost.gaussian(3.0) + Cost.gaussian(1.0),
    Cost.laplace(2.0) + Cost.gaussian(2.0),
    3 * Cost.laplace(4.0) + Cost.randomized_response(0.3),
]


@pytest.mark.parametrize("base", [base for base in BASES if "table" not in repr(base)], ids=repr)
@pytest.mark.parametrize("rate", [0.02, 0.4])
def test_one_release_on_a_sample_has_the_closed_form_profile(base: Cost, rate: float) -> None:
    # E_g'((1-q) Q + q P || Q) = q E_g(P || Q) with g' = 1 + q (g - 1): the larger order above 1 for symmetric pairs
    sampled = base.sampled(rate)
    for epsilon in (0.05, 0.3, 1.0):
        moved = math.log1p(rate * math.expm1(epsilon))
        low, high = base.bounds(epsilon=epsilon)
        assert sampled.delta(moved) >= rate * low * (1 - 1e-9)
        assert sampled.delta(moved) <= rate * high * (1 + 2e-4) + 1e-12


@pytest.mark.parametrize(
    "base",
    [pytest.param(base, marks=[pytest.mark.slow] if "gaussian" in repr(base) else []) for base in BASES],
    ids=repr,
)
def test_repeated_samples_cost_less_than_repeated_releases_and_are_stored(base: Cost) -> None:
    sampled = base.sampled(0.1)
    assert Cost.from_json(sampled.to_json()) == sampled
    assert (5 * sampled).delta(0.5) <= (5 * base).delta(0.5) * (1 + 1e-6)
    low, high = (5 * sampled).bounds(epsilon=0.2)
    assert 0 <= low <= high <= 1


def test_gaussians_on_one_sample_are_one_gaussian() -> None:
    together = 50 * (Cost.gaussian(2.0) + Cost.gaussian(2.0)).sampled(0.05)
    single = 50 * Cost.gaussian(math.sqrt(2.0)).sampled(0.05)
    assert together.epsilon(1e-6) == pytest.approx(single.epsilon(1e-6), rel=1e-9)


def test_one_sample_for_all_releases_costs_more_than_a_sample_for_each() -> None:
    cost = Cost.laplace(2.0)
    assert (4 * cost).sampled(0.1).delta(1.0) > (4 * cost.sampled(0.1)).delta(1.0)


def test_a_tradeoff_curve_can_be_sampled() -> None:
    curve = Cost.from_tradeoff(Cost.gaussian(1.0).tradeoff())
    low, high = curve.sampled(0.1).bounds(epsilon=0.2)
    truth = Cost.gaussian(1.0).sampled(0.1).delta(0.2)
    assert low <= truth <= high <= 1.02 * truth


# --------------------------------------------------------------------------------------------------- Rényi curves


@settings(max_examples=20, deadline=None)
@given(
    p=st.lists(st.floats(0.05, 1.0), min_size=3, max_size=3),
    q=st.lists(st.floats(0.05, 1.0), min_size=3, max_size=3),
    rate=st.floats(0.001, 0.9),
    order=st.floats(1.1, 12.0),
)
def test_a_sampled_curve_stays_above_every_mechanism_under_it(
    p: list[float], q: list[float], rate: float, order: float
) -> None:
    one, other = np.array(p) / sum(p), np.array(q) / sum(q)
    mechanism = Cost.from_pair(one, other)
    curve = Cost.renyi({a: mechanism.rdp(a) for a in np.arange(1.25, 14.0, 0.25)})
    mixed = rate * one + (1 - rate) * other
    truth = max(
        math.log((mixed**order * other ** (1 - order)).sum()), math.log((other**order * mixed ** (1 - order)).sum())
    ) / (order - 1)
    assert truth <= curve.sampled(rate).rdp(order) * (1 + 1e-9) + 1e-13


@pytest.mark.parametrize("order", [2.0, 3.0, 8.0, 32.0])
def test_the_sampled_curve_of_gaussian_noise_is_close_at_whole_orders(order: float) -> None:
    truth = Cost.gaussian(2.0).sampled(0.01).rdp(order)  # certified, from the pair
    assert Cost.concentrated(1 / 8).sampled(0.01).rdp(order) == pytest.approx(truth, rel=0.005 * (1 + order))
    assert Cost.concentrated(1 / 8).sampled(0.01).rdp(order) >= truth * (1 - 1e-9)


def test_curves_at_the_ends() -> None:
    cost = Cost.concentrated(0.5)
    assert cost.sampled(0.0) == Cost.zero()
    assert cost.sampled(1.0) == cost
    assert cost.sampled(0.5).sampled(0.5) == cost.sampled(0.25)
    assert Cost.renyi({2.0: 1.0}).sampled(0.1).rdp(3.0) == math.inf
    assert cost.sampled(0.999999).rdp(4.0) <= cost.rdp(4.0)
    assert 0 < cost.sampled(1e-12).rdp(2.0) < 1e-20
    mixed = (Cost.concentrated(0.1) + Cost.gaussian(2.0)).sampled(0.1)
    assert Cost.from_json(mixed.to_json()) == mixed
    assert mixed.epsilon(1e-6) < (Cost.concentrated(0.1) + Cost.gaussian(2.0)).epsilon(1e-6)


# --------------------------------------------------------------------------------------- fixed size, replace-one


def small_mechanism(rows: list[list[float]], epsilon: float) -> np.ndarray:
    """Laws over three outcomes for each multiset of two binary records, all within e^epsilon of each other."""
    laws = np.exp(0.5 * epsilon * np.array(rows))
    return laws / laws.sum(axis=1, keepdims=True)


@settings(max_examples=15, deadline=None)
@given(
    rows=st.lists(st.lists(st.floats(0, 1), min_size=3, max_size=3), min_size=3, max_size=3),
    epsilon=st.floats(0.1, 2.0),
    others=st.lists(st.integers(0, 1), min_size=3, max_size=3),
    share=st.floats(0, 0.9),
)
def test_no_small_mechanism_on_samples_of_fixed_size_gets_above_the_bound(
    rows: list[list[float]], epsilon: float, others: list[int], share: float
) -> None:
    # 4 records, samples of 2, three independent rounds: all samples and all outcomes
    laws = small_mechanism(rows, epsilon)

    def outcome(data: list[int]) -> np.ndarray:
        samples = list(itertools.combinations(data, 2))
        return np.sum([laws[sum(sample)] for sample in samples], axis=0) / len(samples)

    one, other = repeated(outcome([0, *others]), 3), repeated(outcome([1, *others]), 3)
    cost = 3 * Cost.pure(epsilon, adjacency=REPLACE).sampled(0.5, scheme="without_replacement")
    level = share * epsilon
    truth = max(hockey_stick(one, other, level), hockey_stick(other, one, level))
    assert truth <= cost.delta(level) * (1 + 1e-9) + 1e-15


@pytest.mark.parametrize("base", [Cost.gaussian(1.0, adjacency=REPLACE), Cost.laplace(1.0, adjacency=REPLACE)])
def test_a_sample_of_fixed_size_costs_more_than_the_poisson_pair_once_composed(base: Cost) -> None:
    fixed = base.sampled(0.1, scheme="without_replacement")
    naive = base.with_adjacency("add-remove").sampled(0.1)
    assert fixed.delta(0.1) == pytest.approx(naive.delta(0.1), rel=1e-9)  # one step: the same above gamma = 1
    assert (20 * fixed).delta(0.5) > 1.05 * (20 * naive).delta(0.5)


@pytest.mark.parametrize("base", [Cost.gaussian(1.0), Cost.laplace(0.5), Cost.staircase(1.0)])
def test_the_pair_of_fixed_size_is_a_pair_of_distributions_that_mirror_each_other(base: Cost) -> None:
    pair = base.with_adjacency(REPLACE).sampled(0.2, scheme="without_replacement").parts[0][0].pair()
    assert pair is not None
    points = np.array([-3.0, -0.3, -0.05, -1e-9, 1e-9, 0.05, 0.3, 3.0])
    tails = pair.tails(points)
    assert np.allclose(tails.p_above + tails.p_below, 1, atol=1e-12)
    assert np.allclose(tails.q_above + tails.q_below, 1, atol=1e-12)
    assert np.allclose(tails.p_above, tails.q_below[::-1], atol=1e-12)
    assert (np.diff(tails.p_above) <= 1e-15).all()


def test_every_finite_pair_is_met_exactly_by_its_mirrored_sample() -> None:
    cost = Cost.randomized_response(1.0, adjacency=REPLACE).sampled(0.3, scheme="without_replacement")
    for epsilon in (0.0, 0.1, 0.4):
        grown = 1 + (math.exp(epsilon) - 1) / 0.3
        truth = 0.3 * max(0.0, (math.e - grown) / (math.e + 1))
        assert cost.delta(epsilon) == pytest.approx(truth, rel=1e-9, abs=1e-12)


# ------------------------------------------------------------------------------------------ Poisson, replace-one


def triple(q: float, epsilon: float, u: np.ndarray, v: np.ndarray) -> float:
    """E_gamma((1-q) N(0) + q N(u) || (1-q) N(0) + q N(v)) in the plane, on a grid."""
    x = np.linspace(-8, 8, 401)
    grid = np.stack(np.meshgrid(x, x, indexing="ij"))
    cell = (x[1] - x[0]) ** 2 / (2 * math.pi)

    def density(shift: np.ndarray) -> np.ndarray:
        return np.asarray(np.exp(-0.5 * ((grid - shift[:, None, None]) ** 2).sum(axis=0)) * cell)

    middle = density(np.zeros(2))
    p, other = (1 - q) * middle + q * density(u), (1 - q) * middle + q * density(v)
    return hockey_stick(p, other, epsilon)


@settings(max_examples=25, deadline=None)
@given(
    q=st.floats(0.05, 0.95),
    epsilon=st.floats(0.0, 1.0),
    lengths=st.tuples(st.floats(0, 1), st.floats(0, 1)),
    angle=st.floats(0, math.pi),
)
def test_no_two_shifts_are_further_apart_than_opposite_ones(
    q: float, epsilon: float, lengths: tuple[float, float], angle: float
) -> None:
    u = np.array([lengths[0], 0.0])
    v = lengths[1] * np.array([math.cos(angle), math.sin(angle)])
    bound = Cost.gaussian(1.0).sampled(q, adjacency=REPLACE).delta(epsilon)
    assert triple(q, epsilon, u, v) <= bound + 1e-6
    assert triple(q, epsilon, np.array([1.0, 0.0]), np.array([-1.0, 0.0])) == pytest.approx(bound, abs=1e-4)


def test_the_naive_pair_for_a_replaced_record_is_too_low() -> None:
    # sampling the pair N(2), N(0) of the unsampled release: below the truth of this very mechanism after two steps
    truth = (2 * Cost.gaussian(1.0).sampled(0.9, adjacency=REPLACE)).bounds(epsilon=0.1)
    naive = (2 * Cost.gaussian(0.5).sampled(0.9)).delta(0.1)
    assert naive < 0.996 * truth[0]
    # and so is the add-remove pair, by far
    assert (10 * Cost.gaussian(1.0).sampled(0.1)).delta(0.5) < 0.5 * (
        10 * Cost.gaussian(1.0).sampled(0.1, adjacency=REPLACE)
    ).bounds(epsilon=0.5)[0]


def test_the_two_sided_pair_is_inverted_to_rounding() -> None:
    pair = TwoSidedGaussianPair(0.7, 0.2)
    x = np.array([-5.0, -1.0, -1e-3, 0.0, 1e-6, 0.5, 3.0])
    log_ratio = np.log(0.8 + 0.2 * np.exp((2 * x - 1) / 0.98)) - np.log(0.8 + 0.2 * np.exp((-2 * x - 1) / 0.98))
    assert np.allclose(pair.output(log_ratio), x, rtol=1e-12, atol=1e-14)
    tails = pair.tails(log_ratio)
    assert np.allclose(tails.p_above, 0.8 * ndtr(-x / 0.7) + 0.2 * ndtr((1 - x) / 0.7), rtol=1e-9)


@settings(max_examples=15, deadline=None)
@given(
    rows=st.lists(st.lists(st.floats(0, 1), min_size=3, max_size=3), min_size=3, max_size=3),
    epsilon=st.floats(0.1, 1.5),
    q=st.floats(0.05, 0.95),
    share=st.floats(0, 1.5),
)
def test_no_small_mechanism_gets_above_the_bound_when_a_record_is_replaced(
    rows: list[list[float]], epsilon: float, q: float, share: float
) -> None:
    # one law without the record and two with it, all within e^epsilon; two rounds
    without, old, new = small_mechanism(rows, epsilon)
    one, other = repeated((1 - q) * without + q * old, 2), repeated((1 - q) * without + q * new, 2)
    cost = 2 * Cost.pure(epsilon).sampled(q, adjacency=REPLACE)
    level = share * epsilon
    assert hockey_stick(one, other, level) <= cost.delta(level) * (1 + 1e-9) + 1e-14
    assert cost.delta(0.0) <= (2 * Cost.pure(2 * epsilon)).delta(0.0) * (1 + 1e-9)


def test_replaced_laplace_noise_stays_above_its_own_mixture_and_below_the_group_of_two() -> None:
    q, scale, epsilon = 0.3, 1.0, 0.2
    x = np.linspace(-40, 40, 800_001)
    step = x[1] - x[0]

    def density(shift: float) -> np.ndarray:
        return np.asarray(np.exp(-np.abs(x - shift) / scale) / (2 * scale) * step)

    truth = hockey_stick((1 - q) * density(0) + q * density(1), (1 - q) * density(0) + q * density(-1), epsilon)
    bound = Cost.laplace(scale).sampled(q, adjacency=REPLACE).delta(epsilon)
    assert truth <= bound * (1 + 1e-6) <= 1.25 * truth
    assert bound <= Cost.laplace(scale / 2).delta(epsilon)


def test_only_gaussian_noise_itself_has_the_two_sided_pair() -> None:
    noise = Cost.gaussian(1.0).sampled(0.2, adjacency=REPLACE)
    guarantee = Cost.gaussian_dp(1.0).sampled(0.2, adjacency=REPLACE)
    assert noise.parts[0][0].is_tight()
    assert not guarantee.parts[0][0].is_tight()
    for epsilon in (0.05, 0.3, 1.0):
        assert guarantee.delta(epsilon) > 1.001 * noise.delta(epsilon)
    several = (Cost.gaussian(2.0) + 3 * Cost.gaussian(2.0)).sampled(0.2, adjacency=REPLACE)
    assert several.delta(0.3) == pytest.approx(noise.delta(0.3), rel=1e-9)


def test_losses_beyond_floating_point_count_as_infinite() -> None:
    cost = (3 * Cost.pure(250.0)).sampled(0.5, adjacency=REPLACE)
    assert 0.49 < cost.delta(1.0) <= 0.5 * (1 + 1e-9)
    cost = (2 * Cost.pure(500.0, adjacency=REPLACE)).sampled(0.5, scheme="without_replacement")
    assert 0.49 < cost.delta(1.0) <= 1.0


# ---------------------------------------------------------------------------------------------------- balls in bins


@pytest.mark.parametrize(
    ("cost", "p", "q"),
    [
        (Cost.randomized_response(1.0), [math.e, 1.0], [1.0, math.e]),
        (Cost.from_pair([0.6, 0.3, 0.1], [0.1, 0.5, 0.4]), [0.6, 0.3, 0.1], [0.1, 0.5, 0.4]),
        (Cost.from_pair([0.6, 0.4, 0.0], [0.1, 0.5, 0.4]), [0.6, 0.4, 0.0], [0.1, 0.5, 0.4]),
        (Cost.from_pair([0.5, 0.4, 0.1], [0.6, 0.4, 0.0]), [0.5, 0.4, 0.1], [0.6, 0.4, 0.0]),
    ],
)
@pytest.mark.parametrize("batches", [2, 3, 5])
def test_an_epoch_of_few_batches_agrees_with_all_outcomes(
    cost: Cost, p: list[float], q: list[float], batches: int
) -> None:
    with_record, without = np.array(p) / sum(p), np.array(q) / sum(q)
    others = repeated(without, batches)
    epoch = np.zeros_like(others)
    for place in range(batches):
        law = np.ones(1)
        for batch in range(batches):
            law = np.multiply.outer(law, with_record if batch == place else without).ravel()
        epoch += law / batches
    sampled = cost.sampled(1 / batches, scheme="balls_in_bins")
    for epsilon in EPSILONS:
        truth = max(hockey_stick(epoch, others, epsilon), hockey_stick(others, epoch, epsilon))
        low, high = sampled.bounds(epsilon=epsilon)
        assert low <= truth * (1 + 1e-9) + 1e-12
        assert truth <= high * (1 + 1e-12) + 1e-15
        assert high == pytest.approx(truth, rel=1e-6, abs=1e-9)
    if batches > 2:
        return
    two = 2 * sampled
    twice, plain = repeated(epoch, 2), repeated(others, 2)
    truth = max(hockey_stick(twice, plain, 0.2), hockey_stick(plain, twice, 0.2))
    assert truth <= two.delta(0.2) * (1 + 1e-9) <= truth * 1.001 + 1e-8


@pytest.mark.parametrize("rate", [0.1, 0.7])
def test_an_epoch_on_a_poisson_sample_agrees_with_all_outcomes(rate: float) -> None:
    with_record, without = np.array([0.6, 0.3, 0.1]), np.array([0.1, 0.5, 0.4])
    others = np.multiply.outer(without, without).ravel()
    epoch = 0.5 * (np.multiply.outer(with_record, without) + np.multiply.outer(without, with_record)).ravel()
    mixed = rate * epoch + (1 - rate) * others
    cost = Cost.from_pair(with_record, without).sampled(0.5, scheme="balls_in_bins").sampled(rate)
    assert Cost.from_json(cost.to_json()) == cost
    for epsilon in EPSILONS:
        truth = max(hockey_stick(mixed, others, epsilon), hockey_stick(others, mixed, epsilon))
        low, high = cost.bounds(epsilon=epsilon)
        assert low - 1e-9 <= truth <= high * (1 + 1e-9) + 1e-12
        assert high == pytest.approx(truth, rel=1e-6, abs=1e-8)


def test_two_batches_of_gaussian_noise_agree_with_an_integral_in_the_plane() -> None:
    x = np.linspace(-9, 9, 1601)
    cell = (x[1] - x[0]) ** 2 / (2 * math.pi)
    a, b = np.meshgrid(x, x, indexing="ij")
    other = np.exp(-0.5 * (a * a + b * b)) * cell
    epoch = 0.5 * other * (np.exp(a - 0.5) + np.exp(b - 0.5))
    cost = Cost.gaussian(1.0).sampled(0.5, scheme="balls_in_bins")
    for epsilon in (0.1, 0.5, 1.5):
        truth = max(hockey_stick(epoch, other, epsilon), hockey_stick(other, epoch, epsilon))
        low, high = cost.bounds(epsilon=epsilon)
        assert low - 1e-5 <= truth <= high + 1e-5
        assert high - low <= 1e-3 * high


def test_an_epoch_of_a_hundred_batches_has_the_mean_of_simulated_epochs() -> None:
    draws, batches = 100_000, 100
    rng = np.random.default_rng(7)
    total = np.zeros(draws)
    for _ in range(batches):
        total += np.exp(rng.standard_normal(draws) - 0.5)
    gain = np.maximum(total / batches - math.exp(0.1), 0.0)
    cost = Cost.gaussian(1.0).sampled(1 / batches, scheme="balls_in_bins")
    low, high = cost.bounds(epsilon=0.1)
    assert low <= high <= 1.01 * low
    spread = 6 * float(gain.std()) / math.sqrt(draws)  # a false alarm in a billion runs
    assert abs(float(gain.mean()) - high) <= spread
    assert abs(float(gain.mean()) - 1.2 * high) > spread


def test_an_epoch_costs_no_more_than_one_release_on_all_data() -> None:
    cost = Cost.laplace(1.0)
    epoch = cost.sampled(0.1, scheme="balls_in_bins")
    assert epoch.delta(0.1) < cost.delta(0.1)
    assert epoch.pure_epsilon() == cost.pure_epsilon()
    assert Cost.from_json(epoch.to_json()) == epoch
    assert cost.sampled(1.0, scheme="balls_in_bins") == cost


# -------------------------------------------------------------------------------------- the other schemes, refusals


def test_one_cycle_is_one_sampled_turn() -> None:
    cost = Cost.gaussian(1.0)
    assert cost.sampled(0.1, scheme="cyclic_poisson") == cost.sampled(0.1)
    assert cost.sampled(1.0, scheme="cyclic_poisson") == cost


@pytest.mark.parametrize(
    ("cost", "options", "words"),
    [
        (Cost.gaussian(1.0), {"scheme": "shuffled"}, "not Poisson samples"),
        (Cost.gaussian(1.0), {"scheme": "shuffled"}, r"estimate\(delta=..., shuffled_batches=T\)"),
        (
            Cost.pure(1.0, adjacency=REPLACE).sampled(0.1, scheme="without_replacement").with_adjacency("add-remove"),
            {},
            "its pair speaks of a replaced record",
        ),
        (
            Cost.pure(1.0, adjacency=REPLACE).shuffled(10).with_adjacency("add-remove"),
            {},
            "its pair speaks of a replaced record",
        ),
        (Cost.gaussian(1.0), {"scheme": "poison"}, "did you mean 'poisson'"),
        (Cost.gaussian(1.0), {"scheme": "without_replacement"}, "replace-one"),
        (Cost.gaussian(1.0, adjacency=REPLACE), {}, "wrong"),
        (Cost.gaussian(1.0), {"adjacency": "swap"}, "choose one of"),
        (Cost.renyi({2.0: 0.5}), {"adjacency": REPLACE}, "covers smaller groups only"),
        (Cost.gaussian(1.0), {"scheme": "balls_in_bins", "adjacency": REPLACE}, "add-remove"),
    ],
)
def test_what_is_not_analysed_is_refused(cost: Cost, options: dict[str, str], words: str) -> None:
    with pytest.raises(InvalidArgument, match=words):
        cost.sampled(0.1, **options)  # type: ignore[arg-type]


def test_the_batches_of_an_epoch_are_a_whole_number() -> None:
    with pytest.raises(InvalidArgument, match="number of batches"):
        Cost.gaussian(1.0).sampled(0.3, scheme="balls_in_bins")


@pytest.mark.parametrize(
    "cost",
    [
        Cost.gaussian(1.0).sampled(0.1, adjacency=REPLACE),
        Cost.laplace(1.0).sampled(0.1, adjacency=REPLACE),
        Cost.laplace(1.0, adjacency=REPLACE).sampled(0.1, scheme="without_replacement"),
        (Cost.laplace(1.0) + 2 * Cost.gaussian(1.0)).sampled(0.1, adjacency=REPLACE),
    ],
)
def test_all_schemes_are_stored(cost: Cost) -> None:
    assert Cost.from_json(cost.to_json()) == cost
    assert cost.adjacency == REPLACE


@pytest.mark.parametrize("kind", ["replaced", "together", "without_replacement", "balls_in_bins", "sampled_renyi"])
def test_malformed_descriptions_are_refused(kind: str) -> None:
    for fields in ({}, {"base": 3, "rate": 0.1, "twice": {}}, {"parts": 7}, {"base": {"kind": "gaussian"}, "rate": 2}):
        part = {"kind": kind, "count": 1, **fields}
        with pytest.raises(StorageError):
            Cost.from_dict({"format": "discreet.cost", "version": 1, "adjacency": "add-remove", "parts": [part]})


# ----------------------------------------------------------------------------------------------- dominating tables


@settings(max_examples=40, deadline=None)
@given(
    p=st.lists(st.floats(0.01, 1.0), min_size=4, max_size=4),
    q=st.lists(st.floats(0.01, 1.0), min_size=4, max_size=4),
    corners=st.lists(st.floats(0.01, 4.0), min_size=2, max_size=12, unique=True),
    epsilon=st.floats(-3.0, 3.0),
)
def test_a_table_through_a_profile_dominates_it_everywhere(
    p: list[float], q: list[float], corners: list[float], epsilon: float
) -> None:
    one, other = np.array(p) / sum(p), np.array(q) / sum(q)
    points = np.array([0.0, *sorted(corners)])
    table = table_through(
        points,
        np.array([hockey_stick(one, other, e) for e in points]),
        np.array([hockey_stick(other, one, e) for e in points]),
    )
    for direction, truth in (
        (Direction.FORWARD, hockey_stick(one, other, epsilon)),
        (Direction.BACKWARD, hockey_stick(other, one, epsilon)),
    ):
        assert truth <= table.profile(epsilon, direction)[1] + table.infinite(direction) + 1e-12
    assert math.fsum(table.mass) + table.q_missing == pytest.approx(1.0, abs=1e-12)
    assert math.fsum(table.mass * np.exp(table.loss)) + table.p_missing == pytest.approx(1.0, abs=1e-12)


def test_a_table_through_the_corners_of_a_finite_pair_is_that_pair() -> None:
    p = np.array([0.2, 0.5, 0.3])
    q = np.array([0.5, 0.3, 0.2])
    losses = np.sort(np.abs(np.log(p / q)))
    points = np.concatenate([[0.0], losses])
    table = table_through(
        points,
        np.array([hockey_stick(p, q, e) for e in points]),
        np.array([hockey_stick(q, p, e) for e in points]),
    )
    for epsilon in np.linspace(0, 1, 11):
        assert table.profile(float(epsilon), Direction.FORWARD)[1] == pytest.approx(
            hockey_stick(p, q, float(epsilon)), abs=1e-9
        )


# ------------------------------------------------------------------------------------------------ shuffled batches


def test_shuffled_batches_prove_more_than_poisson_sampling_claims() -> None:
    claimed = (1_000 * Cost.gaussian(0.8).sampled(1e-3)).epsilon(1e-6)
    assert epsilon_at_least(0.8, batches=1_000, delta=1e-6) > 10 * claimed


def test_shuffled_batches_never_prove_more_than_a_release_on_all_data() -> None:
    # one epoch is a release of everything, in which the record's batch is hidden
    for sigma, batches in [(0.5, 1), (1.0, 10), (2.0, 1_000), (0.3, 100_000)]:
        for epsilon in (0.0, 1.0, 5.0):
            assert delta_at_least(sigma, batches=batches, epsilon=epsilon) <= Cost.gaussian(sigma).delta(epsilon)
        found = epsilon_at_least(sigma, batches=batches, delta=1e-6)
        assert found <= Cost.gaussian(sigma).epsilon(1e-6)
        if found:
            assert delta_at_least(sigma, batches=batches, epsilon=found) >= 1e-6


def test_one_batch_is_the_gaussian_release_itself() -> None:
    assert delta_at_least(1.0, batches=1, epsilon=0.5) == pytest.approx(Cost.gaussian(1.0).delta(0.5), rel=1e-4)


# ------------------------------------------------------------------------------------------------ what is attained


@pytest.mark.parametrize(("mu", "rate"), [(1.0, 0.01), (0.5, 0.02), (1.5, 1e-3)])
def test_the_triangle_lies_below_a_finer_partition_of_the_same_mechanism(mu: float, rate: float) -> None:
    table = fixed_size_below(mu, rate)
    assert table is not None
    assert table.p_missing == table.q_missing == 0
    edges = np.linspace(-9.5, 9.5, 1501)
    u, v = np.array([mu / 2, mu * math.sqrt(0.75)]), np.array([-mu / 2, mu * math.sqrt(0.75)])

    def cells(mean: np.ndarray) -> np.ndarray:
        sides = [np.diff(np.concatenate([[0.0], ndtr(edges - m), [1.0]])) for m in mean]
        return np.multiply.outer(*sides).ravel()

    rest = (1 - rate) * cells(np.zeros(2))
    p, q = rest + rate * cells(u), rest + rate * cells(v)
    above = Cost.gaussian(1 / mu, adjacency=REPLACE).sampled(rate, scheme="without_replacement")
    for epsilon in (0.0, 0.5 * rate, 2 * rate, 10 * rate, 0.3, 1.0):
        truth = hockey_stick(p, q, epsilon)
        found = table.profile(epsilon, Direction.FORWARD)[1]
        assert found <= truth * (1 + 1e-9) + 1e-14
        assert found >= 0.98 * truth - 1e-12 or epsilon > 0.2
        assert truth <= above.delta(epsilon) * (1 + 1e-6) + 1e-14
    assert math.fsum(table.mass) == pytest.approx(1.0, abs=1e-9)


@pytest.mark.slow
def test_many_steps_on_samples_of_fixed_size_reveal_more_than_poisson_samples() -> None:
    fixed = Cost.gaussian(1.0, adjacency=REPLACE).sampled(1e-3, scheme="without_replacement")
    low, high = (100_000 * fixed).bounds(delta=1e-6)
    poisson = (100_000 * Cost.gaussian(1.0).sampled(1e-3)).epsilon(1e-6)
    assert 1.1 * poisson < low < high < 1.25 * low


@pytest.mark.parametrize("epsilon", [0.8, 2.0, 5.0])
def test_three_answers_on_a_sample_of_fixed_size_agree_with_all_outcomes(epsilon: float) -> None:
    rate, times = 0.2, 3
    laws = (np.ones((3, 3)) + (math.exp(epsilon) - 1) * np.eye(3)) / (math.exp(epsilon) + 2)
    one, other = (repeated((1 - rate) * laws[2] + rate * laws[i], times) for i in (0, 1))
    cost = times * Cost.pure(epsilon, adjacency=REPLACE).sampled(rate, scheme="without_replacement")
    for level in (0.0, 0.1, 0.5):
        low, high = cost.bounds(epsilon=level)
        assert low == pytest.approx(hockey_stick(one, other, level), rel=1e-9, abs=1e-14)
        assert low <= high


@settings(max_examples=40, deadline=None)
@given(
    p=st.lists(st.floats(0.001, 1.0), min_size=5, max_size=5),
    q=st.lists(st.floats(0.001, 1.0), min_size=5, max_size=5),
    step=st.floats(0.01, 1.0),
    cut=st.tuples(st.floats(-8.0, -0.1), st.floats(0.1, 8.0)),
    epsilon=st.floats(0.0, 3.0),
)
def test_outcomes_moved_to_a_lattice_bracket_the_profile(
    p: list[float], q: list[float], step: float, cut: tuple[float, float], epsilon: float
) -> None:
    one, other = np.array(p) / sum(p), np.array(q) / sum(q)
    losses, index = np.unique(np.round(np.log(one / other), 9), return_inverse=True)
    pair = AtomsPair(losses, np.bincount(index, weights=other))
    one, other = pair.mass * np.exp(losses), pair.mass
    for direction in Direction:
        first, second = (one, other) if direction is Direction.FORWARD else (other, one)
        truth = hockey_stick(first, second, epsilon)
        ends = []
        for law in discretise(pair, direction, step, cut, 1.0):
            loss = law.origin + step * np.arange(len(law.mass))
            ends.append(float((law.mass * np.maximum(-np.expm1(epsilon - loss), 0.0)).sum()) + law.infinite)
        assert ends[0] - 1e-8 <= truth <= ends[1] + 1e-8


@pytest.mark.parametrize("batches", [10, 200])
def test_brackets_of_epochs_are_narrow_also_when_composed(batches: int) -> None:
    for times in (1, 10):
        low, high = (times * Cost.gaussian(1.0).sampled(1 / batches, scheme="balls_in_bins")).bounds(delta=1e-6)
        assert low < high < 1.003 * low
