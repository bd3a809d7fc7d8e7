"""Which compositions the stored tables hold: name, mechanisms, and the epsilon or delta that is given."""

from __future__ import annotations

from dataclasses import dataclass

from reference.truth import Mechanism


@dataclass(frozen=True)
class Row:
    """One row to compute: exactly one of epsilon and delta is given, the other is found."""

    name: str
    mechanisms: list[Mechanism]
    epsilon: float | None = None
    delta: float | None = None


def sampled(sigma: float, rate: float, count: int = 1) -> Mechanism:
    """A Poisson-sampled Gaussian as a table describes it."""
    return {"kind": "sampled_gaussian", "noise_multiplier": sigma, "rate": rate, "count": count}


def _of(kind: str, **parameters: float) -> Mechanism:
    return {"kind": kind, **parameters}


def _shown(sigma: float, rate: float, count: int) -> str:
    return f"sigma {sigma:g}, q {rate:.6g}, T {count}"


ORDINARY = [
    Row("ordinary 1", [sampled(1.1, 256 / 60_000, 14_000)], delta=1e-5),
    Row("ordinary 2", [sampled(1.0, 0.01, 1_000)], delta=1e-5),
    Row("ordinary 3", [sampled(0.6, 1e-4, 100_000)], delta=1e-6),
    Row("ordinary 4", [sampled(10.0, 0.5, 100)], delta=1e-5),
    Row("ordinary 5", [sampled(0.8, 1e-3, 10_000)], delta=1e-6),
    Row("ordinary 6", [sampled(2.0, 2e-3, 1_000_000)], delta=1e-8),
]

HARD = [
    Row("small delta", [sampled(1.0, 0.01, 1_000)], delta=1e-15),
    Row("small epsilon", [sampled(100.0, 1e-3, 100)], delta=1e-6),
    Row("little noise", [sampled(0.5, 0.1, 1_000)], delta=1e-5),
    Row("million steps", [sampled(1.0, 1e-3, 1_000_000)], delta=1e-6),
    Row("hundred million steps", [sampled(2.0, 1e-4, 100_000_000)], delta=1e-10),
    Row("deep tail", [sampled(1.0, 0.01, 1_000)], delta=1e-50),
]

# (sigma, rate, count) and the deltas at which epsilon is found, then the epsilons at which delta is found
_RANGE: list[tuple[float, float, int, list[float], list[float]]] = [
    (1.0, 0.01, 1_000, [1e-30], [0.5, 3.0]),
    (1.1, 256 / 60_000, 14_000, [1e-10, 1e-20, 1e-50], [1.0, 5.0]),
    (10.0, 0.5, 100, [1e-15, 1e-50], [0.1, 5.0]),
    (2.0, 2e-3, 1_000_000, [1e-30], [2.0]),
    (0.8, 0.02, 300, [1e-5, 1e-12], [1.0]),
    (0.7, 1e-3, 50_000, [1e-6, 1e-20], []),
    (1.5, 0.05, 2_000, [1e-5, 1e-25], [4.0]),
    (4.0, 0.2, 500, [1e-5, 1e-40], [1.0]),
    (3.0, 0.9, 20, [1e-5, 1e-30], [2.0]),
    (1.0, 0.5, 10, [1e-5, 1e-20], [8.0]),
    (0.5, 0.5, 20, [1e-5, 1e-50], []),
    (0.3, 0.2, 50, [1e-5], []),
    (0.25, 0.7, 10, [1e-6], []),
    (0.1, 0.9, 4, [1e-5], []),
    (0.1, 0.9, 8, [1e-5], []),
    (20.0, 1e-2, 10_000, [1e-5, 1e-50], []),
    (50.0, 0.1, 1_000_000, [1e-5, 1e-20], []),
    (100.0, 1e-3, 1_000, [], [1e-4, 1e-5]),
    (1e3, 0.5, 10_000, [1e-8, 1e-50], [1e-2]),
    (1e4, 0.3, 100_000_000, [1e-5, 1e-50], [0.1]),
    (1e4, 0.1, 100, [1e-9], [1e-5]),
    (2.0, 1e-5, 100_000_000, [1e-8], []),
    (5.0, 1e-3, 100_000_000, [1e-10, 1e-50], []),
    (0.9, 1e-4, 10_000_000, [1e-7], []),
    (1.0, 1e-6, 1, [], [1e-5, 0.5, 2.0]),
    (0.1, 1e-3, 1, [1e-6], [40.0]),
    (1e4, 0.5, 1, [1e-8], [1e-5]),
    (1.0, 0.01, 1, [1e-5, 1e-30], [0.1]),
    (0.6, 1e-4, 2, [1e-7], [1.0]),
    (1.0, 0.1, 2, [1e-5, 1e-20], [0.5]),
    (20.0, 1e-6, 100_000_000, [1e-6], [1e-4]),
]

CALIBRATIONS: list[dict[str, float]] = [
    {"rate": 0.01, "count": 10_000, "epsilon": 1.0, "delta": 1e-6},
    {"rate": 256 / 60_000, "count": 14_000, "epsilon": 3.0, "delta": 1e-5},
    {"rate": 0.5, "count": 100, "epsilon": 0.5, "delta": 1e-10},
]

TABLES: dict[str, list[Row]] = {
    "sampled_gaussian": ORDINARY
    + HARD
    + [
        row
        for sigma, rate, count, deltas, epsilons in _RANGE
        for row in (
            *(
                Row(f"{_shown(sigma, rate, count)}, delta {d:g}", [sampled(sigma, rate, count)], delta=d)
                for d in deltas
            ),
            *(
                Row(f"{_shown(sigma, rate, count)}, epsilon {e:g}", [sampled(sigma, rate, count)], epsilon=e)
                for e in epsilons
            ),
        )
    ],
    "gaussian": [
        Row(
            f"Gaussian {sigma:g} x {count}, delta {d:g}",
            [_of("gaussian", noise_multiplier=sigma, count=count)],
            delta=d,
        )
        for sigma, count in ((1.0, 1), (0.1, 4), (5.0, 100), (1e4, 1), (1e4, 100_000_000), (30.0, 12_345))
        for d in (1e-5, 1e-20, 1e-50)
    ],
    "laplace": [
        Row(f"Laplace {b:g} x {n}, {given} {x:g}", [_of("laplace", noise_multiplier=b, count=n)], **{given: x})
        for b, n, given, x in (
            (1.0, 1, "epsilon", 0.25),
            (1.0, 1, "delta", 1e-5),
            (2.0, 2, "epsilon", 0.3),
            (2.0, 2, "delta", 1e-6),
            (0.5, 3, "epsilon", 2.0),
            (10.0, 10, "delta", 1e-5),
            (1.0, 20, "delta", 1e-10),
            (2.0, 50, "epsilon", 8.0),
            (10.0, 100, "delta", 1e-5),
            (10.0, 100, "delta", 1e-20),
            (100.0, 300, "delta", 1e-6),
            (5.0, 400, "delta", 1e-30),
            (3.0, 7, "delta", 1e-30),
            (1.0, 5, "delta", 1e-6),
            (100.0, 5, "epsilon", 0.02),
            (0.1, 2, "delta", 1e-10),
            (10.0, 200, "delta", 1e-50),
        )
    ]
    + [
        Row(
            f"Laplace {', '.join(f'{b:g} x {n}' for b, n in releases)}, {given} {x:g}",
            [_of("laplace", noise_multiplier=b, count=n) for b, n in releases],
            **{given: x},
        )
        for releases, given, x in (
            (((1.0, 3), (2.5, 2)), "delta", 1e-6),
            (((1.0, 3), (2.5, 2)), "epsilon", 1.3),
            (((1.0, 1), (2.0, 1), (3.0, 1), (4.0, 1), (5.0, 1)), "delta", 1e-12),
            (((0.7, 6), (40.0, 4)), "epsilon", 5.0),
            (((1.0, 5), (1.3, 5), (1.7, 5)), "delta", 1e-9),
        )
    ]
    + [
        Row(
            f"sampled Laplace {b:g}, q {q:g} x {n}, {given} {x:g}",
            [_of("sampled_laplace", noise_multiplier=b, rate=q, count=n)],
            **{given: x},
        )
        for b, q, n, given, x in (
            (1.0, 0.1, 1, "epsilon", 0.05),
            (0.5, 0.5, 1, "delta", 1e-3),
            (1.0, 0.1, 2, "epsilon", 0.1),
            (1.0, 0.1, 5, "delta", 1e-5),
            (3.0, 0.5, 20, "delta", 1e-8),
            (1.0, 0.1, 60, "epsilon", 1.0),
            (2.0, 0.01, 200, "delta", 1e-7),
            (1.0, 0.1, 400, "delta", 1e-6),
            (1.0, 0.1, 400, "epsilon", 2.0),
            (0.5, 0.05, 1_000, "delta", 1e-10),
            (2.0, 0.01, 10_000, "delta", 1e-6),
            (1.0, 0.9, 300, "delta", 1e-5),
        )
    ],
    "finite": [
        Row("100 randomized responses", [_of("randomized_response", epsilon=0.1, count=100)], delta=1e-6),
        Row(
            "randomized response 0.1 x 100, epsilon 1",
            [_of("randomized_response", epsilon=0.1, count=100)],
            epsilon=1.0,
        ),
        Row("randomized response 1 x 1", [_of("randomized_response", epsilon=1.0)], epsilon=0.5),
        Row("randomized response 0.01 x 5000", [_of("randomized_response", epsilon=0.01, count=5_000)], delta=1e-20),
        Row(
            "randomized response 2 of 10 x 20",
            [_of("randomized_response", epsilon=2.0, options=10, count=20)],
            delta=1e-6,
        ),
        Row(
            "randomized response 0.5 of 4 x 200",
            [_of("randomized_response", epsilon=0.5, options=4, count=200)],
            epsilon=9.0,
        ),
        Row("staircase 1, 0.3 x 10", [_of("staircase", epsilon=1.0, gamma=0.3, count=10)], delta=1e-5),
        Row("staircase 0.5, 0.75 x 30", [_of("staircase", epsilon=0.5, gamma=0.75, count=30)], delta=1e-5),
        Row("discrete Gaussian 2 x 1", [_of("discrete_gaussian", noise_multiplier=2.0)], epsilon=0.5),
        Row("discrete Gaussian 0.5 x 3", [_of("discrete_gaussian", noise_multiplier=0.5, count=3)], delta=1e-6),
        Row(
            "discrete Gaussian 3 of 4 x 20",
            [_of("discrete_gaussian", noise_multiplier=3.0, sensitivity=4, count=20)],
            delta=1e-10,
        ),
        Row("discrete Gaussian 10 x 100", [_of("discrete_gaussian", noise_multiplier=10.0, count=100)], delta=1e-30),
        Row("discrete Laplace 2 x 1", [_of("discrete_laplace", noise_multiplier=2.0)], epsilon=0.1),
        Row(
            "discrete Laplace 1 of 3 x 25",
            [_of("discrete_laplace", noise_multiplier=1.0, sensitivity=3, count=25)],
            delta=1e-6,
        ),
        Row("discrete Laplace 20 x 1000", [_of("discrete_laplace", noise_multiplier=20.0, count=1_000)], delta=1e-15),
        Row("boxes 0.1, 1e-6 x 50", [_of("approximate", epsilon=0.1, delta=1e-6, count=50)], delta=1e-4),
        Row("boxes 0.1, 1e-6 x 50, epsilon 1", [_of("approximate", epsilon=0.1, delta=1e-6, count=50)], epsilon=1.0),
        Row(
            "twelve different boxes",
            [_of("approximate", epsilon=0.05 * (k + 1), delta=1e-7 * (k + 1)) for k in range(12)],
            delta=1e-5,
        ),
        Row(
            "twelve different boxes, epsilon 1",
            [_of("approximate", epsilon=0.05 * (k + 1), delta=1e-7 * (k + 1)) for k in range(12)],
            epsilon=1.0,
        ),
    ],
    "mixtures": [
        Row(
            "sampled Gaussian and Laplace",
            [sampled(1.1, 256 / 60_000, 14_000), _of("laplace", noise_multiplier=2.0)],
            delta=1e-5,
        ),
        Row(
            "Gaussian and Laplace",
            [_of("gaussian", noise_multiplier=2.0, count=3), _of("laplace", noise_multiplier=1.0, count=2)],
            delta=1e-6,
        ),
        Row(
            "Gaussian and randomized response",
            [_of("gaussian", noise_multiplier=5.0, count=10), _of("randomized_response", epsilon=0.3, count=8)],
            delta=1e-8,
        ),
        Row(
            "five kinds",
            [
                sampled(1.0, 0.02, 500),
                _of("gaussian", noise_multiplier=4.0, count=2),
                _of("laplace", noise_multiplier=3.0, count=4),
                _of("randomized_response", epsilon=0.2, options=3, count=5),
                _of("approximate", epsilon=0.1, delta=1e-9, count=3),
            ],
            delta=1e-5,
        ),
        Row(
            "Gaussian and boxes",
            [_of("gaussian", noise_multiplier=2.0), _of("approximate", epsilon=0.5, delta=1e-8, count=4)],
            epsilon=2.0,
        ),
        Row(
            "Laplace and randomized response",
            [_of("laplace", noise_multiplier=2.0, count=10), _of("randomized_response", epsilon=0.2, count=12)],
            delta=1e-6,
        ),
        Row(
            "Laplace and discrete Laplace",
            [
                _of("laplace", noise_multiplier=1.5, count=3),
                _of("discrete_laplace", noise_multiplier=2.0, sensitivity=2, count=5),
            ],
            delta=1e-5,
        ),
        Row(
            "two Laplaces, responses and boxes",
            [
                _of("laplace", noise_multiplier=1.5, count=3),
                _of("laplace", noise_multiplier=4.0, count=2),
                _of("randomized_response", epsilon=0.3, count=4),
                _of("approximate", epsilon=0.2, delta=1e-9, count=2),
            ],
            delta=1e-6,
        ),
        Row("two noise levels", [sampled(0.8, 0.01, 400), sampled(2.0, 0.05, 1_500)], delta=1e-6),
        Row("two noise levels, epsilon 3", [sampled(0.8, 0.01, 400), sampled(2.0, 0.05, 1_500)], epsilon=3.0),
        Row(
            "discrete and continuous Gaussian",
            [_of("discrete_gaussian", noise_multiplier=3.0, count=5), _of("gaussian", noise_multiplier=3.0, count=5)],
            delta=1e-10,
        ),
        Row(
            "200 different mechanisms",
            [sampled(round(1.0 + 0.01 * k, 10), round(0.002 + 0.0001 * k, 10), 10) for k in range(200)],
            delta=1e-6,
        ),
    ],
}
