"""The short line that bounds the lesser direction from above."""

from hypothesis import given, settings
from hypothesis.strategies import floats, integers, lists, sampled_from, tuples

from discreet.accounting.contour import line_for_epsilon, quick_upper
from discreet.accounting.pair import Direction
from discreet.accounting.pairs.gaussian import SampledGaussianPair
from discreet.accounting.saddle import Unreachable

STEPS = tuples(floats(0.7, 5), floats(1e-3, 0.5), integers(100, 10_000))


@settings(max_examples=30, deadline=None)
@given(
    steps=lists(STEPS, min_size=1, max_size=4),
    direction=sampled_from(list(Direction)),
    epsilon=sampled_from([0.3, 2.0]),
)
def test_the_short_line_is_never_below_the_certified_one(steps, direction, epsilon):
    pairs = [(SampledGaussianPair(sigma, rate), count) for sigma, rate, count in steps]
    try:
        lower, _ = line_for_epsilon(pairs, direction, epsilon).bounds(epsilon)
        quick = quick_upper(pairs, direction, epsilon)
    except (Unreachable, OverflowError):
        return
    assert quick >= lower


def test_the_short_line_is_close_where_the_losses_are_bounded_above():
    pairs = [(SampledGaussianPair(1 + 0.01 * i, 0.002 + 0.0001 * i), 10) for i in range(200)]
    _, upper = line_for_epsilon(pairs, Direction.BACKWARD, 1.2).bounds(1.2)
    quick = quick_upper(pairs, Direction.BACKWARD, 1.2)
    assert upper <= quick * (1 + 1e-12)
    assert quick < 1.3 * upper
