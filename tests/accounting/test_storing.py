"""Stored costs come back equal to the last bit, and anything else is refused rather than guessed."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.accounting import Cost
from discreet.divergence import TradeOff
from discreet.errors import StorageError, UnknownVersion

noise = st.floats(0.01, 1e4)
epsilon = st.floats(1e-6, 50.0)
rate = st.floats(1e-6, 1, exclude_max=True)


@st.composite
def table(draw: st.DrawFn) -> Cost:
    size = draw(st.integers(1, 6))
    weights = st.lists(st.floats(1e-3, 1.0), min_size=size, max_size=size)
    p, q = np.array(draw(weights)), np.array(draw(weights))
    return Cost.from_pair(list(p / p.sum()), list(q / q.sum()))


LEAVES: dict[str, st.SearchStrategy[Cost]] = {
    "gaussian": st.builds(Cost.gaussian, noise),
    "laplace": st.builds(Cost.laplace, noise),
    "discrete_gaussian": st.builds(Cost.discrete_gaussian, st.floats(0.01, 100), sensitivity=st.integers(1, 100)),
    "discrete_laplace": st.builds(Cost.discrete_laplace, noise, sensitivity=st.integers(1, 100)),
    "staircase": st.builds(Cost.staircase, epsilon, gamma=st.none() | st.floats(0.01, 0.99)),
    "randomized_response": st.builds(Cost.randomized_response, epsilon, options=st.integers(2, 1000)),
    "exponential_mechanism": st.builds(Cost.exponential_mechanism, epsilon),
    "pure": st.builds(Cost.pure, epsilon),
    "approximate": st.builds(Cost.approximate, st.just(0.0) | epsilon, st.floats(1e-300, 1.0)),
    "concentrated": st.builds(Cost.concentrated, st.floats(1e-12, 100.0)),
    "gaussian_dp": st.builds(Cost.gaussian_dp, st.floats(1e-6, 100.0)),
    "renyi": st.builds(
        Cost.renyi, st.dictionaries(st.floats(1.0, 1e3, exclude_min=True), st.floats(0, 1e3), min_size=1, max_size=5)
    ),
    "table": table(),
    "sampled": st.builds(lambda cost, q: cost.sampled(q), st.builds(Cost.gaussian, noise) | table(), rate),
    "tradeoff": st.builds(lambda e: Cost.from_tradeoff(TradeOff.from_guarantee(e, 0.0)), st.sampled_from([0.3])),
}


@pytest.mark.parametrize("kind", LEAVES)
@settings(max_examples=10)
@given(data=st.data())
def test_every_kind_comes_back_equal(kind: str, data: st.DataObject) -> None:
    cost = data.draw(st.integers(1, 10**15)) * data.draw(LEAVES[kind])
    text = cost.to_json()
    assert {part["kind"] for part in json.loads(text)["parts"]} == {kind}
    assert Cost.from_json(text) == cost
    assert Cost.from_dict(cost.to_dict()) == cost
    assert Cost.from_json(text).to_json() == text


@settings(max_examples=30)
@given(
    parts=st.lists(st.one_of(*(LEAVES[k] for k in LEAVES if k != "tradeoff")), max_size=6),
    adjacency=st.sampled_from(["add-remove", "replace-one"]),
)
def test_sums_come_back_equal_with_their_adjacency(parts: list[Cost], adjacency: str) -> None:
    cost = sum(parts, Cost.zero()).with_adjacency(adjacency)
    back = Cost.from_json(cost.to_json())
    assert back == cost
    assert back.adjacency == adjacency


def test_the_description_is_plain_json_with_format_and_version() -> None:
    assert (3 * Cost.gaussian(1.1).sampled(0.25)).to_dict() == {
        "format": "discreet.cost",
        "version": 1,
        "adjacency": "add-remove",
        "parts": [{"kind": "sampled", "count": 3, "base": {"kind": "gaussian", "noise_multiplier": 1.1}, "rate": 0.25}],
    }


def test_a_stored_cost_reads_the_same() -> None:
    cost = 10 * Cost.gaussian(1.0).sampled(0.1) + Cost.randomized_response(0.5)
    assert Cost.from_json(cost.to_json()).bounds(delta=1e-5) == cost.bounds(delta=1e-5)


def test_descriptions_written_by_the_first_release_stay_readable() -> None:
    text = (
        '{"format": "discreet.cost", "version": 1, "adjacency": "add-remove", "parts": ['
        '{"kind": "laplace", "count": 2, "noise_multiplier": 3.0}, '
        '{"kind": "randomized_response", "count": 1, "epsilon": 0.5, "options": 4}]}'
    )
    assert Cost.from_json(text) == 2 * Cost.laplace(3.0) + Cost.randomized_response(0.5, options=4)


# ------------------------------------------------------------------ refusals


def described(*parts: object, **changes: object) -> dict[str, Any]:
    return {"format": "discreet.cost", "version": 1, "adjacency": "add-remove", "parts": list(parts), **changes}


GAUSSIAN = {"kind": "gaussian", "count": 1, "noise_multiplier": 1.0}


def without(description: dict[str, Any], field: str) -> dict[str, Any]:
    return {name: value for name, value in description.items() if name != field}


@pytest.mark.parametrize("version", [2, 99, 0, -1, 1.5, "1", None, True])
def test_an_unknown_version_is_refused_with_fitting_advice(version: object) -> None:
    later = version in (2, 99)
    with pytest.raises(UnknownVersion, match="Upgrade discreet" if later else "whole number without quotes") as refused:
        Cost.from_dict(described(GAUSSIAN, version=version))
    assert refused.value.found == version
    assert refused.value.known == 1
    assert repr(version) in str(refused.value)


@pytest.mark.parametrize(
    ("description", "message"),
    [
        (described({"kind": "gauss"}), "unknown kind 'gauss'"),
        (described({"count": 3}), "a part lacks the field 'kind'"),
        (described({"kind": "gaussian", "noise_multiplier": 1.0}), "a 'gaussian' entry lacks the field 'count'"),
        (
            described({"kind": "gaussian", "count": 1}),
            "lacks the field 'noise_multiplier'; it needs 'noise_multiplier'",
        ),
        (
            described({"kind": "gaussian", "count": 1, "noise_multipler": 1.0}),
            r"lacks the field 'noise_multiplier' and has .* which nobody knows \(did you mean 'noise_multiplier'\?\)",
        ),
        (described({"kind": "sampled", "count": 1, "rate": 0.5}), "a 'sampled' entry lacks the field 'base'"),
        (described({"kind": "renyi", "count": 1}), "a 'renyi' entry lacks the field 'curve'"),
        (without(described(GAUSSIAN), "version"), "lacks the field 'version'"),
        (without(described(GAUSSIAN), "parts"), "lacks the field 'parts'"),
        (without(described(GAUSSIAN), "adjacency"), "lacks the field 'adjacency'"),
        (described(GAUSSIAN, adjacensy="x"), "has the field 'adjacensy', which nobody knows"),
        (
            described(GAUSSIAN, format="discreet.filter"),
            "has 'format': 'discreet.filter' where 'discreet.cost' is needed",
        ),
        ([], "not the description of a cost but a list"),
    ],
)
def test_what_is_missing_is_called_missing_and_what_is_unknown_unknown(description: Any, message: str) -> None:
    with pytest.raises(StorageError, match=message):
        Cost.from_dict(description)


MALFORMED: dict[str, object] = {
    "no object": 3,
    "none": None,
    "a list": [],
    "empty": {},
    "another format": described(GAUSSIAN, format="discreet.ledger"),
    "no format": without(described(GAUSSIAN), "format"),
    "no version": without(described(GAUSSIAN), "version"),
    "no adjacency": without(described(GAUSSIAN), "adjacency"),
    "no parts": without(described(GAUSSIAN), "parts"),
    "unknown adjacency": described(GAUSSIAN, adjacency="both"),
    "adjacency of another type": described(GAUSSIAN, adjacency=["add-remove"]),
    "unknown field": described(GAUSSIAN, note="hello"),
    "field that is no string": {**described(GAUSSIAN), 1: 2},
    "parts is a string": described(parts="gaussian"),
    "parts is an object": described(parts={"kind": "gaussian"}),
    "part is a number": described(3),
    "part is a list": described(["gaussian", 1]),
    "no kind": described(without(GAUSSIAN, "kind")),
    "unknown kind": described({**GAUSSIAN, "kind": "gauss"}),
    "kind of another type": described({**GAUSSIAN, "kind": []}),
    "no count": described(without(GAUSSIAN, "count")),
    "count zero": described({**GAUSSIAN, "count": 0}),
    "count negative": described({**GAUSSIAN, "count": -1}),
    "count broken": described({**GAUSSIAN, "count": 1.5}),
    "count is a string": described({**GAUSSIAN, "count": "1"}),
    "count true": described({**GAUSSIAN, "count": True}),
    "count NaN": described({**GAUSSIAN, "count": math.nan}),
    "no parameter": described(without(GAUSSIAN, "noise_multiplier")),
    "parameter too many": described({**GAUSSIAN, "sensitivity": 1}),
    "part field that is no string": described({**GAUSSIAN, 1: 2}),
    "parameter is a string": described({**GAUSSIAN, "noise_multiplier": "1"}),
    "parameter is none": described({**GAUSSIAN, "noise_multiplier": None}),
    "parameter NaN": described({**GAUSSIAN, "noise_multiplier": math.nan}),
    "parameter infinite": described({**GAUSSIAN, "noise_multiplier": math.inf}),
    "parameter zero": described({**GAUSSIAN, "noise_multiplier": 0.0}),
    "parameter negative": described({**GAUSSIAN, "noise_multiplier": -1.0}),
    "delta above 1": described({"kind": "approximate", "count": 1, "epsilon": 1.0, "delta": 1.1}),
    "one option": described({"kind": "randomized_response", "count": 1, "epsilon": 1.0, "options": 1}),
    "half an option": described({"kind": "randomized_response", "count": 1, "epsilon": 1.0, "options": 2.5}),
    "rate 0": described({"kind": "sampled", "count": 1, "base": without(GAUSSIAN, "count"), "rate": 0.0}),
    "rate above 1": described({"kind": "sampled", "count": 1, "base": without(GAUSSIAN, "count"), "rate": 2.0}),
    "base with a count": described({"kind": "sampled", "count": 1, "base": GAUSSIAN, "rate": 0.5}),
    "base is a string": described({"kind": "sampled", "count": 1, "base": "gaussian", "rate": 0.5}),
    "base of unknown kind": described({"kind": "sampled", "count": 1, "base": {"kind": "x"}, "rate": 0.5}),
    "base that cannot be sampled": described(
        {"kind": "sampled", "count": 1, "base": {"kind": "concentrated", "rho": 1.0}, "rate": 0.5}
    ),
    "curve is a string": described({"kind": "renyi", "count": 1, "curve": "x"}),
    "curve is empty": described({"kind": "renyi", "count": 1, "curve": []}),
    "curve with short rows": described({"kind": "renyi", "count": 1, "curve": [[2.0]]}),
    "curve at order 1": described({"kind": "renyi", "count": 1, "curve": [[1.0, 0.5]]}),
    "curve with NaN": described({"kind": "renyi", "count": 1, "curve": [[2.0, math.nan]]}),
    "table of strings": described({"kind": "table", "count": 1, "p": ["a"], "q": [1.0]}),
    "table of text": described({"kind": "table", "count": 1, "p": "ab", "q": [1.0]}),
    "table of unequal length": described({"kind": "table", "count": 1, "p": [0.5, 0.5], "q": [1.0]}),
    "table that does not sum to 1": described({"kind": "table", "count": 1, "p": [0.5, 0.6], "q": [0.5, 0.5]}),
    "table with negative masses": described({"kind": "table", "count": 1, "p": [1.5, -0.5], "q": [0.5, 0.5]}),
    "empty table": described({"kind": "table", "count": 1, "p": [], "q": []}),
    "empty tradeoff": described({"kind": "tradeoff", "count": 1, "p": [], "q": [], "witness_p": [], "witness_q": []}),
    "tradeoff that does not sum to 1": described(
        {"kind": "tradeoff", "count": 1, "p": [0.1], "q": [0.1], "witness_p": [], "witness_q": []}
    ),
    "own distributions": described({"kind": "own_distributions", "count": 1, "p": 1, "q": 2}),
}


@pytest.mark.parametrize("description", MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_description_is_refused(description: object) -> None:
    with pytest.raises(StorageError) as refused:
        Cost.from_dict(description)  # type: ignore[arg-type]
    assert len(str(refused.value)) > 20, "the message says what is wrong"


@pytest.mark.parametrize(
    "text",
    ["", "{", "null", "3", "[]", "NaN", '"discreet.cost"', '{"format": ', "[" * 100_000, None, 3, b"\xff"],
    ids=lambda text: repr(text)[:20],
)
def test_text_that_is_no_description_is_refused(text: object) -> None:
    with pytest.raises(StorageError):
        Cost.from_json(text)  # type: ignore[arg-type]


def test_a_description_nested_too_deeply_is_refused() -> None:
    part: dict[str, Any] = {"kind": "gaussian", "noise_multiplier": 1.0}
    for _ in range(3_000):
        part = {"kind": "sampled", "base": part, "rate": 0.5}
    with pytest.raises(StorageError):
        Cost.from_dict(described({**part, "count": 1}))


@settings(max_examples=100)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.just("gaussian"),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["kind", "count", "p", "q", "base", "rate", "curve", "epsilon", "delta", "mu"]), inner
            )
        ),
        max_leaves=8,
    )
)
def test_whatever_is_in_a_part_it_is_read_or_refused(part: object) -> None:
    try:
        cost = Cost.from_dict(described(part))
    except StorageError:
        return
    assert Cost.from_dict(cost.to_dict()) == cost


def test_own_distributions_cannot_be_stored_and_the_way_out_is_named() -> None:
    from scipy.stats import norm

    with pytest.raises(StorageError, match="from_tradeoff"):
        (2 * Cost.from_pair(norm(1), norm(0))).to_dict()
