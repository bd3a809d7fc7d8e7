"""A membership attack with fixed error rates: how likely an event is with a record and without it."""

import math

from scipy.special import betaincinv

ALPHA = 1e-9


def proved_delta(release, *, epsilon, event, draws):
    """A lower bound on delta(epsilon), wrong with probability at most ALPHA: P(event) - e^epsilon Q(event).

    `release(True)` runs with the record, `release(False)` without; exact binomial bounds [Clopper and Pearson 1934].
    """
    there = sum(event(release(True)) for _ in range(draws))
    absent = sum(event(release(False)) for _ in range(draws))
    least = 0.0 if there == 0 else float(betaincinv(there, draws - there + 1, ALPHA / 2))
    most = 1.0 if absent == draws else float(betaincinv(absent + 1, draws - absent, 1 - ALPHA / 2))
    return least - math.exp(epsilon) * most
