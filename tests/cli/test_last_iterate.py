"""`discreet account last-iterate`: the numbers of the library, on a screen or as JSON."""

from __future__ import annotations

import pytest

from cli.calling import call, good, good_json
from discreet import Cost, last_iterate
from discreet.cli.last_iterate import ALGORITHMS

PNSGD = "account last-iterate pnsgd --records 10000 --position 1 --step-size 0.5 --noise 0.5 --delta 1e-6"


def test_every_algorithm_offered_is_one_of_the_library() -> None:
    for name in ALGORITHMS:
        assert callable(getattr(last_iterate, name.replace("-", "_")))


def test_it_gives_the_epsilon_of_the_library_and_of_composition() -> None:
    shown = good_json(f"{PNSGD} --json")
    cost = last_iterate.pnsgd(n=10_000, position=1, lipschitz=1, smoothness=1, step=0.5, noise=0.5)
    assert shown["epsilon"] == cost.epsilon(1e-6)
    assert shown["composition"] == pytest.approx(Cost.gaussian_dp(4.0).epsilon(1e-6), rel=1e-9)
    assert Cost.from_dict(shown["cost"]) == cost
    assert shown["adjacency"] == "replace-one"


@pytest.mark.parametrize(
    ("words", "cost"),
    [
        (
            "stop-pnsgd --records 100",
            lambda: last_iterate.stop_pnsgd(n=100, lipschitz=1, smoothness=1, step=1, noise=5),
        ),
        (
            "skip-pnsgd --records 100 --public 9",
            lambda: last_iterate.skip_pnsgd(n=100, public=9, lipschitz=1, smoothness=1, step=1, noise=5),
        ),
        (
            "multi-epoch-pnsgd --records 100 --epochs 4 --adjacency add-remove",
            lambda: last_iterate.multi_epoch_pnsgd(
                n=100, epochs=4, lipschitz=1, smoothness=1, step=1, noise=5, adjacency="add-remove"
            ),
        ),
        (
            "noisy-gradient-descent --records 100 --steps 50 --diameter 2",
            lambda: last_iterate.noisy_gradient_descent(
                n=100, steps=50, lipschitz=1, smoothness=1, step=1, noise=5, diameter=2
            ),
        ),
        (
            "cyclic --records 100 --batch 10 --epochs 3 --strong-convexity 0.5",
            lambda: last_iterate.cyclic(
                n=100, batch=10, epochs=3, lipschitz=1, smoothness=1, step=1, noise=5, strong_convexity=0.5
            ),
        ),
        (
            "pnsgd --records 10 --clipped --linear-model",
            lambda: last_iterate.pnsgd(
                n=10, lipschitz=1, smoothness=1, step=1, noise=5, clipped=True, linear_model=True
            ),
        ),
        (
            "hockey-stick-contraction --records 10 --position 2 --diameter 1",
            lambda: last_iterate.hockey_stick_contraction(n=10, position=2, lipschitz=1, step=1, noise=5, diameter=1),
        ),
        (
            "hockey-stick-contraction --records 10 --position 2 --diameter 1 --smoothness 0.5",
            lambda: last_iterate.hockey_stick_contraction(
                n=10, position=2, lipschitz=1, step=1, noise=5, diameter=1, smoothness=0.5
            ),
        ),
    ],
)
def test_each_algorithm_takes_its_own_options(words: str, cost) -> None:
    shown = good_json(f"account last-iterate {words} --step-size 1 --noise 5 --delta 1e-6 --json")
    assert Cost.from_dict(shown["cost"]) == cost()


def test_sampled_batches_are_read_too() -> None:
    shown = good_json(
        "account last-iterate sampled-projected-sgd --records 10000 --rate 1/100 --steps 1e6 --step-size 0.1 "
        "--noise 0.1 --diameter 0.1 --delta 1e-6 --json"
    )
    assert shown["epsilon"] < 0.3 * shown["composition"]


def test_the_screen_names_the_bound_and_explain_says_why() -> None:
    assert "if every state were released" in good(PNSGD)
    assert "iteration won" in good(f"{PNSGD} --explain")


def test_what_contraction_adds_is_shown_beside_composition() -> None:
    words = (
        "account last-iterate hockey-stick-contraction --records 9 --position 5 --diameter 1 --step-size 1 --noise 2"
    )
    shown = good_json(f"{words} --delta 1e-6 --json")
    assert shown["composition"] == pytest.approx(Cost.gaussian_dp(1.0).epsilon(1e-6), rel=1e-9)
    assert shown["epsilon"] < 0.8 * shown["composition"]
    assert "contraction won" in good(f"{words} --delta 1e-6 --explain")


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        ("pnsgd --noise 1", 2, "needs --records, --step-size"),
        ("stop-pnsgd --records 10 --step-size 1 --noise 1 --public 3", 2, "does not know --public"),
        ("pnsg --records 10", 2, "did you mean 'pnsgd'"),
        ("pnsgd --records 10 --step-size 3 --noise 1", 1, "2 / smoothness"),
        ("pnsgd --records 10 --step-size 1 --noise 1 --position 11", 1, "1 to 10"),
        ("pnsgd --records 10 --step-size 1 --noise 1 --clipped", 1, "linear_model=True"),
        (
            "hockey-stick-contraction --records 10 --step-size 1 --noise 1 --clipped --diameter 1",
            2,
            "does not know --clipped",
        ),
        ("hockey-stick-contraction --records 10 --step-size 1 --noise 1", 2, "needs --diameter"),
        ("sampled-projected-sgd --records 9 --rate 0.1 --steps 5 --step-size 0.1 --noise 1", 2, "--diameter"),
    ],
)
def test_wrong_calls_are_refused(words: str, code: int, says: str) -> None:
    result = call(*f"account last-iterate {words} --delta 1e-6".split())
    assert result.exit_code == code
    assert says in result.output
