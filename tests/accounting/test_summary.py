"""Explanations and summaries: every number agrees with the cost, is rounded the safe way, and is said in words."""

from __future__ import annotations

import json
import math
import re
import warnings
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.accounting import leaves
from discreet.accounting.cost import Cost
from discreet.accounting.digits import bracket, percent, up
from discreet.divergence import TradeOff, bayes_error
from discreet.divergence import positive_predictive_value as exact_predictive_value
from discreet.errors import CertificateError, InvalidArgument

TRAINING = 1_000 * Cost.gaussian(1.0).sampled(rate=0.01) + Cost.laplace(2.0)
COSTS = [
    Cost.zero(),
    Cost.pure(1.0),
    TRAINING,
    Cost.concentrated(0.1),
    Cost.approximate(0.5, 1e-3, adjacency="replace-one"),
    Cost.renyi({4.0: 0.1}),
    20 * Cost.discrete_gaussian(10.0),
]


# ------------------------------------------------------------------------------------------------- shown numbers


@given(value=st.floats(1e-300, 1e300))
def test_shown_numbers_are_rounded_away_from_the_claim(value: float) -> None:
    assert float(up(value)) >= value * (1 - 2e-12)
    assert float(up(value)) <= value * (1 + 2e-6)
    lower, upper = map(float, bracket(value, value)[1:-1].split(","))
    assert lower * (1 - 2e-12) <= value <= upper * (1 + 2e-12)


def test_shown_numbers_are_short() -> None:
    assert up(1.0000000000000002) == "1"
    assert up(0.1) == "0.1"
    assert up(2.37583762697) == "2.375838"
    assert up(1e-5) == "1e-05"
    assert up(1.23456789e-30) == "1.234568e-30"
    assert up(math.inf) == "infinite"
    assert percent(0.99999999) == "100 %"
    assert percent(0.12345678) == "12.35 %"
    assert percent(0.12345678, up=False) == "12.34 %"


# --------------------------------------------------------------------------------------------------- explanations


@pytest.mark.parametrize("cost", [TRAINING, 14_000 * Cost.gaussian(1.1).sampled(rate=256 / 60_000), Cost.pure(1.0)])
def test_an_explanation_and_a_summary_quote_the_same_belief(cost: Cost) -> None:
    row = cost.summary(1e-5)["prior 50 %, 1 % false alarms"]
    for told in (cost.explain(delta=1e-5), cost.explain(delta=1e-9), cost.explain(epsilon=0.1)):
        assert f"becomes at most {row.shown()} sure" in " ".join(told.meaning.split())


def test_an_explanation_says_what_was_read_how_and_what_it_means() -> None:
    told = TRAINING.explain(delta=1e-5)
    lower, upper = TRAINING.bounds(delta=1e-5)
    assert (told.lower, told.upper) == (lower, upper)
    assert told.method in ("contour", "grid")
    assert told.width < 1e-6
    text = " ".join(str(told).split())
    for piece in (
        "laplace(noise_multiplier=2)",
        "1000 times gaussian(noise_multiplier=1).sampled(rate=0.01)",
        "add-remove: one person more or fewer",
        f"epsilon at delta = 1e-05: {up(upper)}, certified bracket [",
        told.method,
        " ".join(told.reason.split()),
        f"'{told.direction}'",
        "relative width",
        f"at most e^{up(upper)} =",
        "plus 1e-05",
        "Filter",
    ):
        assert piece in text, piece
    assert repr(told) == str(told)
    assert max(map(len, str(told).splitlines())) <= 100


def test_the_belief_in_an_explanation_follows_from_its_epsilon_and_delta() -> None:
    told = Cost.pure(1.0).explain(delta=0.0)
    assert told.upper == pytest.approx(1.0)
    assert "at most e^1 = 2.719 times" in told.meaning
    assert "plus" not in told.meaning
    assert f"at most {percent(math.e / (1 + math.e))} sure" in told.meaning  # prior 1/2: e / (1 + e)


def test_an_explanation_of_delta_names_the_epsilon() -> None:
    told = Cost.gaussian(1.0).explain(epsilon=1.0)
    assert told.question == "delta at epsilon = 1"
    assert told.method == "gaussian_dp"
    assert f"plus {up(Cost.gaussian(1.0).delta(1.0))}" in told.meaning


def test_an_explanation_is_plain_about_extremes_and_about_what_a_guarantee_leaves_open() -> None:
    assert "reveal nothing" in Cost.zero().explain(delta=0.0).meaning
    assert "Nothing can be promised" in Cost.gaussian(1.0).explain(delta=0.0).meaning
    assert "left open by the guarantee" in Cost.concentrated(0.1).explain(delta=1e-5).certificate
    replaced = Cost.pure(0.5, adjacency="replace-one").explain(epsilon=0.1)
    assert "anybody else's" in replaced.meaning
    assert "number of people being public" in replaced.neighbours


@pytest.mark.parametrize("cost", COSTS, ids=repr)
def test_every_cost_can_be_explained_and_summarised_without_warnings(cost: Cost) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert str(cost.explain(epsilon=1.0))
        summary = cost.summary(1e-6)
    assert json.loads(json.dumps(summary.to_dict(), allow_nan=False))["adjacency"] == cost.adjacency
    assert len({row.name for row in summary.rows}) == len(summary.rows)


# ------------------------------------------------------------------------------------------------------ summaries


@pytest.mark.parametrize("mu", [0.1, 0.5, 1.0, 3.0])
def test_what_attackers_can_do_against_gaussian_noise_matches_neyman_and_pearson(mu: float) -> None:
    summary, curve = Cost.gaussian_dp(mu).summary(), TradeOff.gaussian(mu)
    assert summary["advantage"].upper == pytest.approx(curve.advantage(), rel=1e-9)
    floor = summary["Bayes error"].lower
    assert floor is not None
    assert floor == pytest.approx(bayes_error(curve, prior=0.5), rel=1e-9)
    for prior in (0.5, 0.1, 0.01):
        for false_alarm in (0.01, 0.001):
            found = summary[f"prior {percent(prior)}, {percent(false_alarm)} false alarms"].upper
            exact = float(exact_predictive_value(curve, prior=prior, false_alarm=false_alarm))
            assert found is not None
            assert exact * (1 - 1e-12) <= found <= exact * 1.002


@given(epsilon=st.floats(1e-3, 20))
def test_a_pure_cost_bounds_every_posterior_by_bayes_rule(epsilon: float) -> None:
    summary = Cost.pure(epsilon).summary()
    for prior in (0.5, 0.1, 0.01):
        exact = prior * math.exp(epsilon) / (1 - prior + prior * math.exp(epsilon))
        after_any_answer = summary[f"prior {percent(prior)}"].upper
        assert after_any_answer == pytest.approx(exact, rel=1e-12)
        for false_alarm in ("1 %", "0.1 %"):
            after_test = summary[f"prior {percent(prior)}, {false_alarm} false alarms"].upper
            assert after_test is not None
            assert after_any_answer is not None
            assert after_test <= after_any_answer * (1 + 1e-12)


def test_the_table_agrees_with_the_cost() -> None:
    cost, delta = 50 * Cost.laplace(20.0), 1e-5
    summary = cost.summary(delta)
    assert summary["pure epsilon"].upper == cost.pure_epsilon()
    assert (summary["epsilon at delta 1e-05"].lower, summary["epsilon at delta 1e-05"].upper) == cost.bounds(
        delta=delta
    )
    assert summary["zCDP rho"].upper == cost.zcdp()
    assert summary["GDP mu"].upper == cost.gdp()
    assert summary["Rényi divergence 8"].upper == pytest.approx(cost.rdp(8.0), rel=1e-12)
    assert summary["advantage"].upper == cost.advantage()
    assert summary.delta == delta


def test_the_table_is_aligned_and_shows_the_promised_end() -> None:
    text = str(Cost.gaussian(2.0).summary(1e-5))
    lines = text.splitlines()
    start = lines[3].index("what it says")
    rows = lines[5:]
    assert all(line[start - 1] == " " and line[start] != " " for line in rows)
    assert lines[0] == "Cost(gaussian(noise_multiplier=2))"
    assert re.search(r"^pure epsilon +infinite  losses are unbounded$", text, re.MULTILINE)
    assert re.search(r"^GDP mu +0\.5  ", text, re.MULTILINE)
    error = Cost.gaussian(2.0).summary(1e-5)["Bayes error"]
    assert error.shown() == percent(error.lower or 0.0, up=False)


def test_what_cannot_be_certified_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise CertificateError("this", limit="a test", advice="Nothing to do.")

    monkeypatch.setattr(Cost, "bounds", refuse)
    monkeypatch.setattr(Cost, "profile", refuse)
    summary = Cost.gaussian(1.0).summary()
    assert summary["epsilon at delta 1e-06"].upper is None
    assert summary["epsilon at delta 1e-06"].shown() == "not certified"
    assert summary["Bayes error"].shown() == "not certified"
    assert summary["prior 1 %, 1 % false alarms"].shown() == "not certified"
    assert "not certified" in str(summary)
    assert "not certified" in Cost.gaussian(1.0)._repr_html_()


# ------------------------------------------------------------------------------------------------------ notebooks


class Tags(HTMLParser):
    """Counts opened and closed tags, and collects the text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.seen.add(tag)
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize("cost", COSTS, ids=repr)
def test_notebooks_get_well_formed_html(cost: Cost) -> None:
    for shown in (cost, cost.summary(), cost.explain(delta=1e-5)):
        tags = Tags(shown._repr_html_())
        assert tags.open == []
        assert tags.seen <= {"table", "thead", "tbody", "tr", "th", "td", "p", "br", "code", "pre"}


def test_names_are_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leaves.Laplace, "describe", lambda _: "<script>alert('&')</script>")
    cost = Cost.laplace(1.0)
    for shown in (cost, cost.summary(), cost.explain(delta=1e-5)):
        page = shown._repr_html_()
        assert "<script>" not in page
        assert "<script>alert('&')</script>" in " ".join(Tags(page).text.split())


def test_the_notebook_view_of_a_cost_shows_its_parts_and_a_reading() -> None:
    text = Tags(TRAINING._repr_html_()).text
    assert "1000gaussian(noise_multiplier=1).sampled(rate=0.01)" in text
    assert f"epsilon at delta 1e-06: {up(TRAINING.epsilon(1e-6))}" in text
    assert "nothing was released" in Tags(Cost.zero()._repr_html_()).text


def test_a_row_that_does_not_exist_offers_the_closest_one() -> None:
    with pytest.raises(InvalidArgument, match="did you mean 'GDP mu'"):
        Cost.pure(1.0).summary()["GDP my"]
