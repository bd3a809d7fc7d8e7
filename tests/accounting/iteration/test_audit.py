"""Quadratic losses make every state Gaussian, so the true mu of the last iterate is known: no bound may be below it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from discreet import last_iterate

PROCESSES = 400


def orthogonal(draw: np.random.Generator, size: int) -> np.ndarray:
    return np.linalg.qr(draw.normal(size=(size, size)))[0]


def random_process(seed: int) -> tuple[float, float]:
    """(true mu, its bound) of SGD on random quadratic losses in random dimension, where one record is exchanged.

    f_i(w) = (w - x_i)' H_i (w - x_i) / 2 with eigenvalues of H_i in [rho, beta], so a step is linear and w_T Gaussian.
    """
    draw = np.random.default_rng(seed)
    d, steps = int(draw.integers(1, 4)), int(draw.integers(1, 40))
    beta = float(draw.uniform(0.2, 3.0))
    rho = float(draw.choice([0.0, draw.uniform(0, beta)]))
    records = int(draw.integers(1, 6))
    curvature = [
        (axes := orthogonal(draw, d)) @ np.diag(draw.uniform(rho, beta, size=d)) @ axes.T for _ in range(records)
    ]
    moved = draw.normal(size=d)  # the exchanged record is the first one: gradient differs by H_0 moved, everywhere
    gradient = curvature[0] @ moved
    eta = draw.uniform(0.05, 2 / beta, size=steps) * (1 - 1e-12)
    sigma = draw.uniform(0.2, 3.0, size=steps)
    gap, covariance = np.zeros(d), np.zeros((d, d))
    batches, touches = np.empty(steps), []
    for t in range(steps):
        chosen = draw.choice(records, size=int(draw.integers(1, records + 1)), replace=False)
        batches[t] = len(chosen)
        step = np.eye(d) - eta[t] * sum(curvature[i] for i in chosen) / len(chosen)
        gap, covariance = step @ gap, step @ covariance @ step.T + (eta[t] * sigma[t]) ** 2 * np.eye(d)
        if 0 in chosen:
            gap = gap - eta[t] * gradient / len(chosen)
            touches.append(t + 1)
    if not touches:
        return 0.0, 0.0
    truth = math.sqrt(gap @ np.linalg.solve(covariance, gap))
    bound = last_iterate.describe(
        steps=steps,
        step=eta,
        noise=sigma,
        sensitivity=float(np.linalg.norm(gradient)) * (1 + 1e-12),
        smoothness=beta,
        strong_convexity=rho * (1 - 1e-12),
        touches=touches,
        batch=batches,
    ).mu
    return truth, bound


def test_no_bound_is_below_the_truth_of_hundreds_of_random_processes() -> None:
    pairs = [random_process(seed) for seed in range(PROCESSES)]
    assert all(truth <= bound * (1 + 1e-9) for truth, bound in pairs)
    # the audit is sharp: some truths come close, so a bound of nine tenths would be caught many times
    assert sum(truth > 0.9 * bound > 0 for truth, bound in pairs) > 20


@pytest.mark.parametrize("rho", [1e-3, 0.1, 0.9])
@pytest.mark.parametrize("steps", [1, 3, 50, 2000])
def test_full_batch_descent_attains_its_bound(rho: float, steps: int) -> None:
    # f(w) = rho w^2 / 2 plus a linear term that the record changes: one dimension, all shifts in one direction
    eta, sigma, n, lipschitz = 0.7, 0.3, 50, 2.0
    gap = variance = 0.0
    for _ in range(steps):
        gap = (1 - eta * rho) * gap + eta * 2 * lipschitz / n
        variance = (1 - eta * rho) ** 2 * variance + (eta * sigma) ** 2
    cost = last_iterate.noisy_gradient_descent(
        n=n, steps=steps, lipschitz=lipschitz, smoothness=1.0, strong_convexity=rho, step=eta, noise=sigma
    )
    assert cost.gdp() == pytest.approx(gap / math.sqrt(variance), rel=1e-9)
    low, high = cost.bounds(delta=1e-5)
    assert low == pytest.approx(high, rel=1e-6)


def test_the_lower_end_of_the_bracket_is_what_quadratic_losses_reach() -> None:
    eta, sigma, rho = 0.5, 1.0, 0.2
    gap = variance = 0.0
    for t in range(30):
        gap = (1 - eta * rho) * gap + (2 * eta if t % 10 == 9 else 0.0)
        variance = (1 - eta * rho) ** 2 * variance + (eta * sigma) ** 2
    cost = last_iterate.multi_epoch_pnsgd(
        n=10, epochs=3, lipschitz=1.0, smoothness=1.0, strong_convexity=rho, step=eta, noise=sigma
    )
    leaf = cost.parts[0][0]
    assert leaf.process.attained == pytest.approx(gap / math.sqrt(variance), rel=1e-8)
    assert leaf.process.attained < 0.99 * leaf.mu
    low, high = cost.bounds(delta=1e-5)
    assert low < high


def test_projection_does_not_make_the_bound_wrong() -> None:
    """One dimension, a projection onto [0, D]: the law of w_T is computed on a grid, and its profile stays below."""
    diameter, eta, sigma, steps = 1.0, 1.0, 0.8, 6
    grid = np.linspace(0, diameter, 801)
    bound = last_iterate.process(
        steps=steps, step=eta, noise=sigma, sensitivity=1.0, smoothness=1.0, diameter=diameter, touches="all"
    )

    def law(drift: float) -> np.ndarray:
        from scipy.special import ndtr

        edges = np.concatenate([[-np.inf], (grid[1:] + grid[:-1]) / 2, [np.inf]])
        mass = np.zeros(len(grid))
        mass[400] = 1.0
        kernel = np.diff(ndtr((edges[None, :] - (grid[:, None] + drift)) / (eta * sigma)), axis=1)
        for _ in range(steps):  # a linear loss: w + drift, noise, projection (the mass beyond an end goes to it)
            mass = mass @ kernel
        return mass

    p, q = law(0.5), law(-0.5)
    for epsilon in (0.0, 0.5, 1.0, 2.0, 4.0):
        truth = float(np.maximum(p - math.exp(epsilon) * q, 0).sum())
        assert truth <= bound.delta(epsilon) + 1e-9
