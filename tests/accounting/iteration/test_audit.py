"""Quadratic losses make every state Gaussian, so the true mu of the last iterate is known: no bound may be below it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import ndtr

from discreet import last_iterate
from discreet.accounting.iteration.process import Process
from discreet.accounting.iteration.runs import runs_of
from discreet.accounting.iteration.schedule import cost_of

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


def random_interval(seed: int) -> tuple[list[tuple[float, float]], str]:
    """(true delta, its bound) at some epsilons of a random process that is projected onto an interval.

    One dimension, w <- Pi[c_t w + move_t + noise], the record moving some steps by s_t / 2 either way. The law of w_T
    is computed on a grid; the mass beyond an end goes to the end.
    """
    draw = np.random.default_rng(seed)
    steps, diameter = int(draw.integers(1, 10)), float(draw.uniform(0.2, 3))
    grid = np.linspace(0, diameter, 201)
    edges = np.concatenate([[-np.inf], (grid[1:] + grid[:-1]) / 2, [np.inf]])
    noise, factor = draw.uniform(0.2, 1.5, steps), draw.choice([1.0, 0.9, 0.5], steps)
    push = np.where(draw.random(steps) < 0.5, draw.uniform(0.1, 2, steps), 0.0)
    push[int(draw.integers(steps))] = 1.0
    move = draw.uniform(-0.5, 0.5, steps) * draw.choice([0, 1])

    def law(sign: float) -> np.ndarray:
        mass = np.zeros(len(grid))
        mass[100] = 1.0
        for t in range(steps):
            centre = factor[t] * (grid - diameter / 2) + diameter / 2 + sign * push[t] / 2 + move[t]
            mass = mass @ np.diff(ndtr((edges[None, :] - centre[:, None]) / noise[t]), axis=1)
        return mass

    process = Process("interval", runs_of(factor), runs_of(noise), runs_of(push), diameter)
    cost, p, q = cost_of(process, "replace-one"), law(1.0), law(-1.0)
    pairs, winner = [], process.winner
    for epsilon in (0.0, 0.3, 1.0):
        reading = cost.reading(epsilon=epsilon)
        gamma = math.exp(epsilon)
        truth = max(float(np.maximum(a - gamma * b, 0).sum()) for a, b in ((p, q), (q, p)))
        pairs.append((truth, reading.upper))
        winner = "contraction" if "contracted" in reading.reason or "approximate" in reading.reason else winner
    return pairs, winner


def test_no_bound_is_below_the_truth_of_random_processes_on_an_interval() -> None:
    found = [random_interval(seed) for seed in range(60)]
    pairs = [pair for some, _ in found for pair in some]
    assert all(truth <= bound + 1e-9 for truth, bound in pairs)
    assert sum(truth > 0.8 * bound for truth, bound in pairs) > 20  # so a bound of four fifths would be caught
    assert {winner for _, winner in found} == {
        "composition",
        "iteration",
        "iteration from the diameter",
        "contraction",
    }


@pytest.mark.slow
def test_no_bound_is_below_the_truth_of_many_more_random_processes() -> None:
    assert all(truth <= bound * (1 + 1e-9) for truth, bound in map(random_process, range(PROCESSES, 5000)))
    for seed in range(60, 600):
        assert all(truth <= bound + 1e-9 for truth, bound in random_interval(seed)[0])
