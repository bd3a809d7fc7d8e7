r"""Projected noisy SGD with a random number of steps: Skip-PNSGD and Stop-PNSGD.

Their last iterate is a uniformly random iterate in law, which is what convergence proofs are about, and the random
number hides some records further. All bounds hold for every noise level.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from discreet.accounting.cost import Cost
from discreet.accounting.iteration.algorithms import place_of
from discreet.accounting.iteration.losses import Losses
from discreet.accounting.leaves.random_stop import RandomStop
from discreet.arguments import ADJACENCIES, count, one_of, positive

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Reals = NDArray[np.float64]

__all__ = ["skip_pnsgd", "stop_pnsgd"]


def _leaf(losses: Losses, scheme: str, n: int, place: int, *, step: float, noise: float, adjacency: str) -> Cost:
    one_of("adjacency", adjacency, ADJACENCIES)
    eta, sigma = positive("step", step), positive("noise", noise)
    factor = float(losses.factor(np.array([eta]))[0])
    push = float(np.nextafter(eta * losses.sensitivity(adjacency), np.inf))
    leaf = RandomStop(scheme, n, place, factor, float(np.nextafter(eta * sigma, 0.0)), push)
    return Cost(((leaf, 1),), adjacency)


def stop_pnsgd(
    *,
    n: int,
    lipschitz: float,
    smoothness: float,
    step: float,
    noise: float,
    position: int | None = None,
    strong_convexity: float = 0.0,
    adjacency: str = "replace-one",
    clipped: bool = False,
    linear_model: bool = False,
) -> Cost:
    r"""Projected noisy SGD that stops after a number of steps drawn uniformly from 1 ... n.

    Without a position: the worst one, the first. With mu_k = 2 L / (noise sqrt(k)) the record is hidden by k steps or
    not reached, so delta(epsilon) <= (1/n) sum_{k <= n + 1 - position} delta_{mu_k}(epsilon). This is sharper than
    (alpha, 4 alpha L^2 ln(n) / (n noise^2))-RDP for noise >= L sqrt(2 alpha (alpha - 1)) [Feldman et al. 2018, Thm 26],
    which moreover needs n >= 6: its proof bounds 1 + 1/2 + ... + 1/n by ln(n).

    >>> cost = stop_pnsgd(n=10_000, lipschitz=1, smoothness=1, step=1, noise=20)
    >>> round(cost.epsilon(delta=1e-6), 4), round((100 * cost).epsilon(delta=1e-6), 2)
    (0.1111, 0.29)
    """
    n = count("n", n, least=1)
    place = 1 if position is None else place_of(n, position)
    losses = Losses(lipschitz, smoothness, strong_convexity, clipped=clipped, linear_model=linear_model)
    return _leaf(losses, "stop", n, place, step=step, noise=noise, adjacency=adjacency)


def skip_pnsgd(
    *,
    n: int,
    lipschitz: float,
    smoothness: float,
    step: float,
    noise: float,
    position: int | None = None,
    public: int = 0,
    strong_convexity: float = 0.0,
    adjacency: str = "replace-one",
    clipped: bool = False,
    linear_model: bool = False,
) -> Cost:
    r"""Projected noisy SGD that leaves out the first t0 records, t0 drawn uniformly from 0 ... floor(n/2).

    Without a position: the worst one, the last that is not `public`. Never worse than `pnsgd`
    [Feldman et al. 2018, Thm 24]: the record is hidden by as many steps, and is used with probability
    min(1, position / (floor(n/2) + 1)) only.

    >>> round(skip_pnsgd(n=10_000, public=100, lipschitz=1, smoothness=1, step=1, noise=2).gdp(), 6)  # 1 / sqrt(101)
    0.099504
    """
    n = count("n", n, least=1)
    losses = Losses(lipschitz, smoothness, strong_convexity, clipped=clipped, linear_model=linear_model)
    place = place_of(n, position, public)
    return _leaf(losses, "skip", n, place, step=step, noise=noise, adjacency=adjacency)
