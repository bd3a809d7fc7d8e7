"""Costs written as text mean what the same Python would mean, and everything else is refused with a pointer."""

from __future__ import annotations

import inspect

import pytest
import typer
from hypothesis import given
from hypothesis.strategies import floats, integers, recursive, sampled_from, tuples

from discreet import Cost
from discreet.cli.expression import CONSTRUCTORS, METHODS, Expression
from discreet.errors import AdjacencyMismatch, InvalidArgument

SAME = {
    "gaussian(1.1)": Cost.gaussian(1.1),
    "gaussian(noise_multiplier=1.1)": Cost.gaussian(1.1),
    "Cost.gaussian(1.1)": Cost.gaussian(1.1),
    "14_000 * gaussian(1.1).sampled(256/60000)": 14_000 * Cost.gaussian(1.1).sampled(256 / 60_000),
    "gaussian(1.1).sampled(rate=0.5) * 3": 3 * Cost.gaussian(1.1).sampled(0.5),
    "laplace(2) + 3 * laplace(4) + laplace(2)": 2 * Cost.laplace(2) + 3 * Cost.laplace(4),
    "2 * (laplace(2) + pure(1))": 2 * Cost.laplace(2) + 2 * Cost.pure(1),
    "(2 + 3 * 4) * laplace(1e1)": 14 * Cost.laplace(10),
    "gaussian(+10 / (5 - 1) - -1)": Cost.gaussian(3.5),
    "10**3 * gaussian(2**0.5)": 1000 * Cost.gaussian(2**0.5),
    "gaussian(1).sampled(10**-2)": Cost.gaussian(1).sampled(0.01),
    "gaussian(4).grouped(2)": Cost.gaussian(4).grouped(2),
    "discrete_gaussian(2, sensitivity=3)": Cost.discrete_gaussian(2, sensitivity=3),
    "discrete_laplace(2)": Cost.discrete_laplace(2),
    "staircase(1, gamma=0.3)": Cost.staircase(1, gamma=0.3),
    "randomized_response(1, options=4)": Cost.randomized_response(1, options=4),
    "exponential_mechanism(0.5)": Cost.exponential_mechanism(0.5),
    "approximate(1, 1e-6)": Cost.approximate(1, 1e-6),
    "concentrated(0.1)": Cost.concentrated(0.1),
    "gaussian_dp(0.5)": Cost.gaussian_dp(0.5),
    "renyi({2: 0.1, 3: 1/4})": Cost.renyi({2: 0.1, 3: 0.25}),
    "from_pair([0.5, 0.5], [0.2, 0.8])": Cost.from_pair([0.5, 0.5], [0.2, 0.8]),
    "from_pair({'yes': 0.5, 'no': 0.5}, {'yes': 0.2, 'no': 0.8})": Cost.from_pair(
        {"yes": 0.5, "no": 0.5}, {"yes": 0.2, "no": 0.8}
    ),
    "zero()": Cost.zero(),
    "gaussian(1, adjacency='replace-one')": Cost.gaussian(1, adjacency="replace-one"),
    "gaussian(2).grouped(2).with_adjacency('replace-one')": Cost.gaussian(1, adjacency="replace-one"),
    "gaussian(1).sampled(0.5, scheme='poisson')": Cost.gaussian(1).sampled(0.5),
    "gaussian(1, adjacency='replace-one').sampled(0.1, scheme='without_replacement')": Cost.gaussian(
        1, adjacency="replace-one"
    ).sampled(0.1, scheme="without_replacement"),
    "gaussian(1).sampled(0.1, adjacency='replace-one')": Cost.gaussian(1).sampled(0.1, adjacency="replace-one"),
    "pure(1, adjacency='replace-one').shuffled(n=10**4)": Cost.pure(1, adjacency="replace-one").shuffled(10_000),
    "gaussian(1)\n + laplace(1)": Cost.gaussian(1) + Cost.laplace(1),
}


@pytest.mark.parametrize("text", SAME)
def test_text_means_what_python_means(text: str) -> None:
    assert Expression(text).cost() == SAME[text]


def test_every_constructor_that_can_be_written_as_text_is_known() -> None:
    makers = {
        name
        for name, member in inspect.getmembers(Cost, inspect.ismethod)
        if not name.startswith("_") and inspect.signature(member).return_annotation == "Cost"
    }
    assert makers - set(CONSTRUCTORS) == {"from_dict", "from_json", "from_tradeoff"}
    assert set(CONSTRUCTORS) <= makers


def test_every_method_that_makes_a_cost_from_a_cost_is_known() -> None:
    methods = {
        name
        for name, member in inspect.getmembers(Cost, inspect.isfunction)
        if not name.startswith("_") and inspect.signature(member).return_annotation == "Cost"
    }
    assert methods == set(METHODS)


leaf = sampled_from(["gaussian", "laplace", "discrete_laplace", "pure", "concentrated", "gaussian_dp"])
terms = tuples(integers(1, 10**6), leaf, floats(0.01, 100)).map(
    lambda term: (f"{term[0]} * {term[1]}({term[2]!r})", term[0] * getattr(Cost, term[1])(term[2]))
)
sums = recursive(
    terms, lambda inner: tuples(inner, inner).map(lambda two: (f"({two[0][0]} + {two[1][0]})", two[0][1] + two[1][1]))
)


@given(sums)
def test_any_sum_is_read_as_it_was_written(pair: tuple[str, Cost]) -> None:
    text, cost = pair
    assert Expression(text).cost() == cost


@given(floats(0.1, 10), integers(1, 1000))
def test_what_a_cost_calls_itself_can_be_read_again(noise: float, steps: int) -> None:
    cost = steps * Cost.gaussian(float(f"{noise:.3g}")).sampled(0.25) + Cost.laplace(2)
    text = repr(cost).removeprefix("Cost(").removesuffix(")")
    assert Expression(text).cost() == cost


def test_the_unknown_is_put_in_where_x_stands() -> None:
    expression = Expression("10 * gaussian(x).sampled(x / 100) + laplace(2)")
    assert expression.has_unknown
    assert expression.cost(4.0) == 10 * Cost.gaussian(4).sampled(0.04) + Cost.laplace(2)
    assert not Expression("exponential_mechanism(1)").has_unknown


def test_the_adjacency_goes_to_every_mechanism_that_names_none() -> None:
    assert Expression("gaussian(1) + laplace(1)", "replace-one").cost().adjacency == "replace-one"
    with pytest.raises(AdjacencyMismatch):
        Expression("gaussian(1, adjacency='add-remove') + laplace(1)", "replace-one").cost()


REFUSED = {
    "gausian(1)": ["unknown name 'gausian'; did you mean 'gaussian'?", "mechanisms: gaussian, laplace"],
    "frobnicate(1)": ["unknown name 'frobnicate'\n", "mechanisms: gaussian"],
    "Cost.gauss(1)": ["unknown name 'gauss'; did you mean 'gaussian'?"],
    "Cost.from_json('x')": ["unknown name 'from_json'"],
    "gaussian(1).sampeld(2)": ["unknown name 'sampeld'; did you mean 'sampled'?", "sampled, grouped"],
    "gaussian(1).epsilon(1e-5)": ["unknown name 'epsilon'", "methods of a cost"],
    "gaussian(1).__class__()": ["unknown name '__class__'"],
    "gaussian(1).parts": [".parts needs its arguments in parentheses"],
    "gaussian": ["gaussian needs its arguments: gaussian(noise_multiplier)"],
    "gaussian()": ["missing a required argument: 'noise_multiplier'; it is gaussian(noise_multiplier)"],
    "gaussian(1, 2)": ["too many positional arguments"],
    "gaussian(1, noise=2)": ["gaussian has no argument 'noise'; it is gaussian(noise_multiplier)"],
    "gaussian(sigma=1)": [
        "has no argument 'sigma'; did you mean 'noise_multiplier'?; it is gaussian(noise_multiplier)"
    ],
    "randomized_response(1, option=2)": ["did you mean 'options'?"],
    "approximate(eps=1, delta=1e-5)": ["did you mean 'epsilon'?"],
    "gaussian(1).sampled(q=0.1)": ["sampled has no argument 'q'; did you mean 'rate'?"],
    "randomized_response(1, 3)": ["it is randomized_response(epsilon, options=2)"],
    "gaussian(*[1])": ["only numbers"],
    "gaussian(**{'noise_multiplier': 1})": ["** is not understood"],
    "gaussian(gaussian(1))": ["a number must stand here, and this is a cost"],
    "-gaussian(1)": ["a number must stand here"],
    "5": ["this is a number, not a cost"],
    "'gaussian'": ["only numbers and costs"],
    "True": ["only numbers and costs"],
    "1j": ["only numbers and costs"],
    "gaussian(1) - laplace(1)": ["two costs can only be added"],
    "gaussian(1) * laplace(1)": ["two costs can only be added"],
    "gaussian(1) + 1": ["a cost can be repeated"],
    "gaussian(1) / 2": ["a cost can be repeated"],
    "2 // 3 * gaussian(1)": ["only + - * / and ** are understood"],
    "10^9 * gaussian(1)": ["^ is not a power here; write 10**9 or 1e9"],
    "gaussian(1) ** 2": ["a cost can be repeated"],
    "10**(10**10) * gaussian(1)": ["too large"],
    "10**400 * gaussian(1)": ["too large"],
    "0**-1 * gaussian(1)": ["divides by zero"],
    "gaussian((-8)**0.5)": ["not a real number"],
    "1 / 0 * gaussian(1)": ["divides by zero"],
    f"{10**400} / 3 * gaussian(1)": ["too large"],
    "gaussian(x)": ["x is the unknown of 'discreet account calibrate'"],
    "(5).sampled(1)": [".sampled() belongs to a cost"],
    "gaussian(1)(2)": ["only mechanisms and methods"],
    "(lambda: gaussian(1))()": ["only mechanisms and methods"],
    "[gaussian(1)]": ["only numbers, mechanisms"],
    "gaussian(1) if 1 else laplace(1)": ["only numbers, mechanisms"],
    "gaussian(y := 1)": ["only numbers, mechanisms"],
    "__import__('os').system('true')": ["unknown name '__import__'"],
    "renyi({2: [1]})": ["only numbers, mechanisms"],
    "renyi({**{}})": ["only numbers, mechanisms"],
    "gaussian(1": ["not an expression", "never closed"],
    "gaussian(1) laplace(2)": ["not an expression"],
    "": ["not an expression"],
    "import os": ["not an expression"],
    "1and gaussian(1)": ["only numbers, mechanisms"],
    "gaussian(1)\0": ["not an expression"],
    "9" * 5000 + " * gaussian(1)": ["not an expression"],
    "(" * 300 + "1" + ")" * 300: ["not an expression"],
    "-" * 15_000 + "1": ["nested too deeply"],
    "gaussian(1)" + " + gaussian(1)" * 1300: ["nested too deeply"],
    "gaussian(1) + " * 2000: ["characters and at most"],
}


@pytest.mark.parametrize("text", REFUSED, ids=lambda text: text[:40].replace("\0", "NUL"))
def test_everything_else_is_wrong_usage(text: str) -> None:
    with pytest.raises(typer.BadParameter) as refusal:
        Expression(text).cost()
    for part in REFUSED[text]:
        assert part in str(refusal.value.format_message())


def pointed_at(message: str) -> str:
    """The text above the carets."""
    lines = message.splitlines()
    row = next(index for index, line in enumerate(lines) if line.strip() and set(line.strip()) == {"^"})
    start = lines[row].index("^")
    return lines[row - 1][start : start + lines[row].count("^")]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("14000 * gausian(1.1).sampled(1/2)", "gausian"),
        ("14000 * gaussian(1.1).sampeld(1/2)", "sampeld"),
        ("gaussian(3 / 0)", "3 / 0"),
        ("  gaussian(x)", "x"),
        ("laplace(1) + gaussian(1, 2)", "gaussian(1, 2)"),
        ("laplace(1)\n + gausian(1)", "gausian"),
        ("from_pair({'Grüße': 1}, {'Grüße': y})", "y"),
        ("laplace(1) + " * 100 + "gausian(1)", "gausian"),
        ("gaussian(1) $ 2", "$"),
    ],
)
def test_the_message_points_at_the_place(text: str, place: str) -> None:
    with pytest.raises(typer.BadParameter) as refusal:
        Expression(text).cost()
    assert pointed_at(refusal.value.format_message()) == place


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("laplace(1) + gaussian(-1)", "gaussian(-1)"),
        ("laplace(1) + gaussian(1).sampled(2)", "gaussian(1).sampled(2)"),
        ("laplace(1) + 1.5 * gaussian(1)", "1.5 * gaussian(1)"),
        ("-1 * gaussian(1)", "-1 * gaussian(1)"),
        ("gaussian(1, adjacency='remove-one')", "gaussian(1, adjacency='remove-one')"),
    ],
)
def test_a_value_that_the_library_refuses_is_pointed_at_too(text: str, place: str) -> None:
    with pytest.raises(InvalidArgument) as refusal:
        Expression(text).cost()
    [note] = refusal.value.__notes__
    assert pointed_at(note) == place
