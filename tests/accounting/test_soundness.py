"""Inputs that once broke a bracket: each truth is computed here with 40 digits, on a path of its own."""

from __future__ import annotations

import itertools

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis.strategies import floats, integers, lists, sampled_from, tuples

from discreet.accounting import Cost
from discreet.accounting.discretise import tails_of
from discreet.accounting.exact import EnumeratedLoss, TopLoss
from discreet.accounting.pair import Direction
from discreet.accounting.pairs.window import WindowPair
from discreet.errors import DiscreetError, InvalidArgument

mp.mp.dps = 40


def product(*laws: list[tuple[mp.mpf, mp.mpf]]) -> list[tuple[mp.mpf, mp.mpf]]:
    """The law of the total loss of independent finite laws [(loss, probability under P)]."""
    total = [(mp.mpf(0), mp.mpf(1))]
    for law in laws:
        total = [(a + b, p * q) for (a, p), (b, q) in itertools.product(total, law)]
    return total


def delta(law: list[tuple[mp.mpf, mp.mpf]], epsilon: float) -> mp.mpf:
    return mp.fsum(p * (1 - mp.exp(mp.mpf(epsilon) - loss)) for loss, p in law if loss > epsilon)


def discrete_gaussian(scale: float, reach: int = 0) -> list[tuple[mp.mpf, mp.mpf]]:
    s = mp.mpf(scale)
    reach = reach or int(12 * scale) + 5
    weights = {k: mp.exp(-(mp.mpf(k) ** 2) / (2 * s**2)) for k in range(-reach, reach + 1)}
    norm = mp.fsum(weights.values())
    return [((2 * k + 1) / (2 * s**2), w / norm) for k, w in weights.items()]


def response(epsilon: float) -> list[tuple[mp.mpf, mp.mpf]]:
    e = mp.mpf(epsilon)
    return [(e, 1 / (1 + mp.exp(-e))), (-e, 1 / (1 + mp.exp(e)))]


def laplace_profile(epsilon: mp.mpf, level: mp.mpf) -> mp.mpf:
    """delta of Laplace noise of pure level `level` at any real epsilon."""
    if epsilon >= level:
        return mp.mpf(0)
    if epsilon >= 0:
        return 1 - mp.exp((epsilon - level) / 2)
    return 1 - mp.exp(epsilon) + mp.exp(epsilon) * laplace_profile(-epsilon, level)


def check(cost: Cost, epsilon: float, truth: mp.mpf) -> None:
    lower, upper = cost.bounds(epsilon=epsilon)
    assert mp.mpf(lower) <= truth <= mp.mpf(upper), (lower, mp.nstr(truth, 17), upper)


@pytest.mark.parametrize(("scale", "noise", "epsilon"), [(10, 10.0, 0.2), (10, 1.0, 0.9), (7, 2.5, 0.3)])
def test_discrete_gaussian_beside_laplace_leaves_its_lattice_period(scale: int, noise: float, epsilon: float) -> None:
    level = 1 / mp.mpf(noise)
    truth = mp.fsum(p * laplace_profile(mp.mpf(epsilon) - loss, level) for loss, p in discrete_gaussian(scale))
    check(Cost.discrete_gaussian(scale) + Cost.laplace(noise), epsilon, truth)


@pytest.mark.parametrize(("first", "second", "epsilon"), [(7, 16, 0.1), (8, 9, 0.2)])
def test_two_discrete_gaussians_of_different_scale(first: int, second: int, epsilon: float) -> None:
    truth = delta(product(discrete_gaussian(first), discrete_gaussian(second)), epsilon)
    check(Cost.discrete_gaussian(first) + Cost.discrete_gaussian(second), epsilon, truth)


@pytest.mark.parametrize(("scale", "level", "epsilon"), [(7, 0.4, 0.2), (10, 0.00625, 0.1)])
def test_discrete_gaussian_beside_randomized_response(scale: int, level: float, epsilon: float) -> None:
    truth = delta(product(discrete_gaussian(scale), response(level)), epsilon)
    check(Cost.discrete_gaussian(scale) + Cost.randomized_response(level), epsilon, truth)


@pytest.mark.filterwarnings("ignore::discreet.errors.WideBracket")
@pytest.mark.parametrize("epsilon", [1.5, 2.3])
def test_lattices_that_agree_only_nearly(epsilon: float) -> None:
    level = (1 - 5e-10) / 2
    truth = delta(product(discrete_gaussian(1), discrete_gaussian(1), response(level)), epsilon)
    check(2 * Cost.discrete_gaussian(1.0) + Cost.randomized_response(level), epsilon, truth)


@pytest.mark.parametrize(("level", "epsilon"), [(1e-9, 0.0), (1e-3, 9e-4), (1.0, 0.999), (1e-6, 0.999e-6), (3.0, 0.1)])
def test_exponential_mechanism_near_its_largest_loss(level: float, epsilon: float) -> None:
    e, x = mp.mpf(level), mp.mpf(epsilon)
    truth = (1 - mp.exp((x - e) / 2)) ** 2 / (1 - mp.exp(-e))
    upper = Cost.exponential_mechanism(level).delta(epsilon)
    assert truth <= mp.mpf(upper) <= truth * (1 + mp.mpf(10) ** -10)


def test_two_exponential_mechanisms_have_a_lower_bound_that_a_real_one_attains() -> None:
    # losses +-1/2 twice, by hand; the true supremum over mechanisms at epsilon 0.5 is 0.152452
    lower, _ = (2 * Cost.exponential_mechanism(1.0)).bounds(epsilon=0.5)
    assert lower <= 0.152453
    assert lower == pytest.approx(float(delta(product(response(0.5), response(0.5)), 0.5)), rel=1e-9)


def gaussian_profile(x: mp.mpf, mu: mp.mpf) -> mp.mpf:
    return mp.ncdf(mu / 2 - x / mu) - mp.exp(x) * mp.ncdf(-mu / 2 - x / mu)


def sampled_profile(x: mp.mpf, sigma: float, rate: float) -> mp.mpf:
    """Forward profile of one sampled Gaussian, q * delta(ln((e^x - 1 + q)/q))."""
    q, ratio = mp.mpf(rate), (mp.exp(x) - 1 + mp.mpf(rate)) / mp.mpf(rate)
    return 1 - mp.exp(x) if ratio <= 0 else q * gaussian_profile(mp.log(ratio), 1 / mp.mpf(sigma))


def backward_profile(x: mp.mpf, sigma: float, rate: float) -> mp.mpf:
    q = mp.mpf(rate)
    scale = 1 - mp.exp(x) * (1 - q)
    return mp.mpf(0) if scale <= 0 else scale * gaussian_profile(mp.log(mp.exp(x) * q / scale), 1 / mp.mpf(sigma))


@pytest.mark.parametrize(
    ("first", "second", "epsilon"),
    [((3.0, 0.95), (100.0, 0.5), 0.3), ((2.0, 0.9), (30.0, 0.01), 1.0), ((5.0, 0.99), (300.0, 0.01), 0.05)],
)
def test_two_sampled_gaussians_used_once_each(
    first: tuple[float, float], second: tuple[float, float], epsilon: float
) -> None:
    (s, q), (small_s, small_q) = first, second
    sigma, rate = mp.mpf(small_s), mp.mpf(small_q)

    def ratio(x: mp.mpf) -> mp.mpf:
        return 1 - rate + rate * mp.exp((2 * x - 1) / (2 * sigma**2))

    def average(profile, under):
        grid = [sigma * k for k in range(-14, 16)]
        return mp.quad(lambda x: mp.npdf(x, 0, sigma) * under(x) * profile(x), grid, maxdegree=5)

    with mp.workdps(25):
        forward = average(lambda x: sampled_profile(epsilon - mp.log(ratio(x)), s, q), ratio)
        backward = average(lambda x: backward_profile(epsilon + mp.log(ratio(x)), s, q), lambda _: mp.mpf(1))
        check(Cost.gaussian(s).sampled(q) + Cost.gaussian(small_s).sampled(small_q), epsilon, max(forward, backward))


@pytest.mark.parametrize(
    ("sigma", "rate", "epsilon"), [(3.0, 0.9, 0.1), (12.688291170965556, 0.8527985598309091, 1.915878)]
)
def test_one_sampled_gaussian_in_closed_form(sigma: float, rate: float, epsilon: float) -> None:
    with mp.workdps(200):
        truth = max(f(mp.mpf(epsilon), sigma, rate) for f in (sampled_profile, backward_profile))
    check(Cost.gaussian(sigma).sampled(rate), epsilon, truth)


def test_the_infinite_mass_of_a_box_is_compared_exactly() -> None:
    box = Cost.approximate(1.0, 1e-5)
    assert box.epsilon(1e-5) == pytest.approx(1.0, rel=1e-12)
    assert box.epsilon(1e-5 * (1 - 1e-15)) == float("inf")
    assert (2 * box).epsilon(1e-5) == float("inf")


@pytest.mark.parametrize("make", [Cost.randomized_response, Cost.pure, Cost.exponential_mechanism, Cost.staircase])
def test_losses_beyond_floating_point_are_refused(make) -> None:
    with pytest.raises(InvalidArgument, match="epsilon"):
        make(800.0)


def test_distributions_with_different_supports_are_refused() -> None:
    from scipy.stats import expon, halfnorm, norm, uniform

    for p, q in [(expon(loc=0), expon(loc=0.1)), (uniform(0, 1), uniform(0.1, 1)), (norm(), halfnorm())]:
        with pytest.raises(InvalidArgument, match="support"):
            Cost.from_pair(p, q)


@pytest.mark.filterwarnings("ignore::discreet.errors.WideBracket")
def test_tables_of_nearly_equal_probabilities() -> None:
    p, q = [0.4211988449097248, 0.5788011550902752], [0.42119884490966797, 0.578801155090332]
    truth = mp.log(mp.mpf(p[0]) / mp.mpf(q[0]))
    assert mp.mpf(Cost.from_pair(p, q).epsilon(0.0)) >= truth
    half = 2**-49
    low, _ = (1000 * Cost.from_pair([0.5 + half, 0.5 - half], [0.5, 0.5])).bounds(epsilon=0.0)
    assert low <= 4.49e-14  # exact binomial sum: 4.48e-14


def test_the_identity_curve_costs_nothing() -> None:
    lower, _ = Cost.from_tradeoff(lambda alpha: 1 - alpha).bounds(epsilon=0.0)
    assert lower == 0.0


@pytest.mark.parametrize("order", [2.0, 200.0])
def test_renyi_divergences_of_unbounded_pairs_are_not_cut_short(order: float) -> None:
    from scipy.stats import norm

    assert Cost.from_pair(norm(1, 1), norm(0, 1)).rdp(order) >= order / 2 * (1 - 1e-12)
    assert Cost.discrete_gaussian(1.0).rdp(order) >= order / 2 * (1 - 1e-3)


@pytest.mark.parametrize("epsilon", [11.388888888888888, 5.0])
def test_deep_tails_of_the_discrete_gaussian(epsilon: float) -> None:
    check(Cost.discrete_gaussian(3.0), epsilon, delta(discrete_gaussian(3, reach=200), epsilon))


@pytest.mark.parametrize(
    "cost",
    [
        lambda: 2 * Cost.gaussian(0.05).sampled(0.5),
        lambda: 2 * Cost.gaussian(0.01).sampled(0.5),
        lambda: 2 * Cost.discrete_gaussian(0.05),
        lambda: Cost.discrete_gaussian(1.0, sensitivity=100_000),
        lambda: Cost.approximate(100.0, 1e-6).grouped(10),
        lambda: 2 * Cost.laplace(0.002),
    ],
    ids=["sigma .05", "sigma .01", "discrete .05", "wide discrete", "grouped box", "little Laplace noise"],
)
@pytest.mark.filterwarnings("ignore::discreet.errors.WideBracket")
def test_extreme_costs_are_read_or_refused_with_advice(cost) -> None:
    try:
        lower, upper = cost().bounds(delta=1e-5)
    except DiscreetError:
        return
    assert 0 <= lower <= upper


def sampled_gaussian_rdp(order: int, sigma: float, rate: float) -> mp.mpf:
    """The binomial sum for integer orders [Mironov et al. 2019, Sec. 3.3]."""
    s, q = mp.mpf(sigma), mp.mpf(rate)
    terms = (
        mp.binomial(order, k) * (1 - q) ** (order - k) * q**k * mp.exp((k * k - k) / (2 * s**2))
        for k in range(order + 1)
    )
    return mp.log(mp.fsum(terms)) / (order - 1)


@pytest.mark.parametrize(
    ("order", "sigma", "rate"),
    [(300, 0.625, 0.5), (700, 1.0, 0.5), (500, 0.8, 0.2), (700, 1.0, 0.01), (2000, 3.0, 0.1)],
)
def test_renyi_divergences_of_high_order(order: int, sigma: float, rate: float) -> None:
    truth = sampled_gaussian_rdp(order, sigma, rate)
    assert truth <= mp.mpf(Cost.gaussian(sigma).sampled(rate).rdp(order)) <= truth * (1 + mp.mpf(10) ** -9)


@pytest.mark.parametrize(
    "other", [Cost.concentrated(1e-4), Cost.exponential_mechanism(0.1), Cost.renyi({2: 1e-4, 300: 0.1})], ids=repr
)
@pytest.mark.parametrize(("sigma", "rate"), [(0.625, 0.5), (1.0, 0.01), (0.3, 0.1)])
def test_a_composition_costs_at_least_its_largest_part(sigma: float, rate: float, other: Cost) -> None:
    alone = Cost.gaussian(sigma).sampled(rate)
    assert (alone + other).epsilon(1e-3) >= alone.bounds(delta=1e-3)[0]
    assert alone.epsilon(1e-3, method="renyi") >= alone.bounds(delta=1e-3)[0]


@pytest.mark.filterwarnings("ignore::discreet.errors.WideBracket")
def test_own_distributions_are_not_taken_for_bounded() -> None:
    from scipy.stats import norm

    cost = Cost.from_pair(norm(1, 1), norm(0, 1))
    assert cost.epsilon(0.0) == float("inf")
    assert cost.delta(38.0) >= 1.19e-309
    wide = Cost.from_pair(norm(60, 1), norm(0, 1))
    check(wide, 1700.0, gaussian_profile(mp.mpf(1700), mp.mpf(60)))


def test_losses_beyond_the_range_of_e_are_summed_term_by_term() -> None:
    p, q = [1 - 2e-220, 1e-220, 1e-220], [1e-220, 0.3, 0.7 - 1e-220]
    top = mp.log(mp.mpf(p[0]) / mp.mpf(q[0]))
    epsilon = 1012.1374409173801
    check(2 * Cost.from_pair(p, q), epsilon, 1 - mp.exp(mp.mpf(epsilon) - 2 * top))


@given(multiplier=floats(0.01, 1e4), delta=sampled_from([1e-30, 1e-100, 1e-17]))
def test_one_laplace_release_is_read_at_the_true_reciprocal_of_its_noise(multiplier, delta):
    # 1/b is rounded: delta(epsilon) = 1 - e^{(epsilon - 1/b)/2} is computed with the rational 1/b
    epsilon = Cost.laplace(multiplier).epsilon(delta)
    with mp.workdps(150):
        gap = mp.mpf(epsilon) - 1 / mp.mpf(multiplier)
        assert -mp.expm1(gap / 2) <= delta


@settings(deadline=None)
@given(
    groups=lists(tuples(floats(0.05, 2), integers(1, 6), floats(0.05, 1)), min_size=1, max_size=3),
    share=sampled_from([0.5, 1e-3, 1e-9]),
)
def test_the_largest_loss_alone_is_never_above_the_exact_list(groups, share):
    cost = sum(count * Cost.randomized_response(epsilon, options=3).sampled(rate) for epsilon, count, rate in groups)
    pairs = [(leaf.pair(), count) for leaf, count in cost.parts]
    for direction in Direction:
        top, listed = TopLoss(pairs, direction), EnumeratedLoss(pairs, direction)
        delta = share * float(mp.exp(top.log_mass))
        lower, upper = top.epsilon_bounds(delta, delta)
        assert lower <= listed.epsilon_bounds(delta, delta)[1]
        assert upper == float("inf")
        for epsilon in (0.0, 0.5 * top.top, 0.999 * top.top):
            assert top.bounds(epsilon)[0] <= listed.bounds(epsilon)[1]


@pytest.mark.filterwarnings("ignore::discreet.errors.WideBracket")
@pytest.mark.parametrize(
    ("cost", "epsilon"),
    [
        (10**6 * Cost.laplace(1.0).sampled(1e-6), 1.0),
        (2 * Cost.laplace(1 / 590).sampled(0.1), 0.001),
        (2 * Cost.exponential_mechanism(500.0).sampled(0.5), 1.0),
    ],
    ids=str,
)
def test_a_line_without_a_finite_period_leaves_the_reading_to_others(cost: Cost, epsilon: float) -> None:
    lower, upper = cost.bounds(epsilon=epsilon)
    assert 0 <= lower <= upper <= 1


@pytest.mark.parametrize("level", [0.5, 10.0, 100.0, 500.0])
@pytest.mark.parametrize("power", [1e3, 1e4, 1e6, -1e4, -1e6])
def test_the_decay_of_laplace_noise_holds_under_strong_tilts(level: float, power: float) -> None:
    pair = WindowPair(level, with_atoms=True)
    for turns in (1, 2):  # where both atoms and the density point the same way again
        height = turns * float(mp.pi) / level
        a, b = mp.mpf(level), mp.mpc(power, height)
        bent = b - mp.mpf(1) / 2
        density = mp.exp(-a / 2) / 4 * (mp.exp(bent * a) - mp.exp(-bent * a)) / bent
        truth = mp.log(abs(density + mp.exp(-b * a) / 2 + mp.exp(-a + b * a) / 2))
        with np.errstate(all="ignore"):
            assert float(pair.log_decay(power, np.array([height]))[0]) >= truth


@given(level=floats(1e-3, 30), rate=floats(1e-6, 0.999))
def test_a_sampled_window_keeps_its_atoms_at_both_ends(level: float, rate: float) -> None:
    pair = WindowPair(level, with_atoms=True, rate=rate)
    low, high = pair.span
    tails = pair.tails(np.array([low, np.nextafter(high, low)]))
    atom = 0.5 * float(mp.exp(-level))
    assert tails.q_below[0] >= 0.5 * (1 - 1e-12)
    assert tails.q_above[1] >= atom * (1 - 1e-9)
    assert min(column.min() for column in tails_of(pair, Direction.BACKWARD, np.array([-low, -high]))) >= 0


def test_a_grid_of_many_parts_beside_a_sampled_window_does_not_lose_its_upper_end() -> None:
    cost = 108 * Cost.exponential_mechanism(3.023263415309361)
    cost += 35 * Cost.laplace(2.422440357297201).sampled(0.0011843280966609341)
    lower, upper = cost.bounds(epsilon=0.07234906707332393, method="grid")
    assert 0.99 < lower <= upper
