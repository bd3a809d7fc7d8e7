"""The best of a random number of runs: its law is exact, and its price covers every channel that is tried."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet import Cost, InvalidArgument
from discreet.learning.tuning import Runs

DRAWS = 5000


def renyi(p, q, order):
    return math.log(float(np.sum(p**order * q ** (1 - order)))) / (order - 1)


def best_of(channel, runs):
    """The law of the best of K draws: outcomes are in the order of their scores, all different."""
    g = float(runs.parameter)
    below = np.concatenate([[0.0], np.cumsum(channel)])
    below[-1] = 1.0
    if runs.law == "geometric":  # E[z^K]
        generating = g * below / (1 - (1 - g) * below)
    else:
        generating = np.log1p(-(1 - g) * below) / math.log(g)
    return np.diff(generating)


@given(
    seed=st.integers(0, 2**32),
    expected=st.floats(1.5, 200),
    law=st.sampled_from(["logarithmic", "geometric"]),
    size=st.floats(0.05, 2.0),
)
def test_no_channel_reveals_more_than_the_price_of_the_best_run(seed, expected, law, size):
    rng = np.random.default_rng(seed)
    runs = Runs(expected, law=law)
    k = int(rng.integers(2, 8))
    p = rng.dirichlet(np.ones(k))
    q = p * np.exp(rng.uniform(-size, size, k))
    q /= q.sum()
    pure = float(np.abs(np.log(p / q)).max())
    best_p, best_q = best_of(p, runs), best_of(q, runs)
    assert best_p.sum() == pytest.approx(1)
    # pure
    assert np.abs(np.log(best_p / best_q)).max() <= runs.cost(Cost.pure(pure)).pure_epsilon() + 1e-9
    # Rényi: the base curve is the true one of this channel, in the worse direction
    orders = [1.125, 1.5, 2.0, 3.0, 5.0, 9.0, 17.0, 65.0]
    curve = {a: max(renyi(p, q, a), renyi(q, p, a)) + 1e-12 for a in orders}
    log_g = -math.log(float(runs.parameter))
    extra = (1 + runs.eta) * min((1 - 1 / b) * r + log_g / b for b, r in curve.items())
    for a in orders:
        claimed = curve[a] + extra + math.log(runs.mean) / (a - 1)
        assert max(renyi(best_p, best_q, a), renyi(best_q, best_p, a)) <= claimed + 1e-9


def test_the_price_is_the_theorem_for_a_gaussian_base():
    runs = Runs(10.0, law="geometric")
    base = Cost.gaussian(4.0)
    order, log_g = 9.0, -math.log(float(runs.parameter))
    best = min((1 - 1 / b) * b / 32 + log_g / b for b in np.linspace(1, 200, 20_000))
    exact = order / 32 + 2 * best + math.log(10) / (order - 1)
    assert runs.cost(base).rdp(order) == pytest.approx(exact, rel=0.02)
    assert runs.cost(base).rdp(order) >= exact * (1 - 1e-6)


def test_a_fixed_number_of_runs_would_cost_more_than_the_price_of_a_random_one():
    # the reason for the randomness: the best of exactly k runs of randomised response shows the rare outcome often
    p = np.array([1e-3, 1 - 1e-3])[::-1]  # the better score is the rare one
    q = np.array([1e-3 / math.e, 1 - 1e-3 / math.e])[::-1]
    k = 1000
    fixed = np.log((p[0] ** k) / (q[0] ** k))
    priced = Runs(k, law="logarithmic").cost(Cost.pure(1.0)).pure_epsilon()
    assert priced == pytest.approx(2.0)
    assert abs(fixed) > 0.6
    best_p, best_q = best_of(p, Runs(k)), best_of(q, Runs(k))
    assert np.abs(np.log(best_p / best_q)).max() <= priced


@pytest.mark.parametrize("law", ["logarithmic", "geometric"])
@pytest.mark.parametrize("expected", [1.2, 3.0, 20.0])
def test_the_number_of_runs_has_its_law_and_no_other(law, expected):
    runs = Runs(expected, law=law)
    draws = np.array([runs.draw() for _ in range(DRAWS)])
    g = float(runs.parameter)
    ks = np.arange(1, 2000)
    weights = (1 - g) ** ks / ks if law == "logarithmic" else (1 - g) ** ks
    weights /= weights.sum()
    assert (ks * weights).sum() == pytest.approx(runs.mean, rel=1e-3)
    assert runs.mean <= expected * (1 + 1e-9)
    spread = math.sqrt((ks**2 * weights).sum() - runs.mean**2)
    assert abs(draws.mean() - runs.mean) < 6.2 * spread / math.sqrt(DRAWS)  # one false alarm in 10^9
    other = "geometric" if law == "logarithmic" else "logarithmic"
    chance = Runs(expected, law=other).parameter
    wrong = chance if other == "geometric" else (1 - chance) / -math.log(chance)
    ones = (draws == 1).mean()
    assert abs(ones - weights[0]) < 6.2 * math.sqrt(0.25 / DRAWS)
    if expected >= 3:
        assert abs(ones - wrong) > 6.2 * math.sqrt(0.25 / DRAWS)


@pytest.mark.parametrize(("expected", "law"), [(1.0, "geometric"), (math.nan, "geometric"), (5.0, "fixed")])
def test_what_is_no_random_number_of_runs_is_refused(expected, law):
    with pytest.raises(InvalidArgument):
        Runs(expected, law=law)


def test_a_base_without_renyi_divergences_is_refused():
    with pytest.raises(InvalidArgument, match="Rényi"):
        Runs(5.0).cost(Cost.approximate(1.0, 1e-6))
