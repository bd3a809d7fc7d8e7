"""Progress is shown if it is asked for, on standard error, and never tells a number that is secret."""

import numpy as np
import pytest

from discreet.learning import Facts, Goal, KMeans, Logistic, LogisticRegression, Problem
from discreet.learning.convex import PNSGD, SkipPNSGD, StopPNSGD
from discreet.learning.progress import shown

X = np.random.default_rng(1).uniform(0, 1, (400, 2))
Y = X[:, 0] > 0.5


@pytest.mark.parametrize("total", [1, 3, 10, 37, 1000])
def test_without_a_terminal_there_are_ten_lines_at_most_and_the_last_says_that_all_is_done(total, capsys):
    assert list(shown(range(total), "work", verbose=True)) == list(range(total))
    out, lines = capsys.readouterr()
    assert out == ""
    assert lines.splitlines()[-1] == f"work: {total} of {total}"
    assert len(lines.splitlines()) == min(10, total)


@pytest.mark.parametrize("verbose", [False, 0])
def test_nothing_is_printed_unless_it_is_asked_for(verbose, capsys):
    LogisticRegression(bounds=(0, 1), classes=[False, True], verbose=verbose).fit(X, Y)
    KMeans(2, bounds=(0, 1), verbose=verbose).fit(X)
    assert capsys.readouterr() == ("", "")


def test_a_fit_tells_its_steps(capsys):
    LogisticRegression(bounds=(0, 1), classes=[False, True], verbose=True).fit(X, Y)
    assert "preconditioned descent: 10 of 10" in capsys.readouterr().err


@pytest.mark.parametrize(("solver", "told"), [(PNSGD, True), (SkipPNSGD, False), (StopPNSGD, False)])
def test_a_random_time_that_must_stay_secret_is_not_told(solver, told, capsys):
    facts = Facts(loss=Logistic(), features=2, row_norm=1.5, records=400, adjacency="replace-one")
    plan = solver().plan(facts, Goal(epsilon=1.0, delta=1e-6, adjacency="replace-one"))
    plan.run(Problem.of(facts, X, Y), verbose=True)
    assert bool(capsys.readouterr().err) == told
