"""Private naive Bayes: near the one without noise, with classes that are stated or bought."""

import numpy as np
import pytest
from sklearn import naive_bayes
from sklearn.datasets import load_breast_cancer

from discreet import InvalidArgument
from discreet.learning import GaussianNB


def planted(n=5000, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.choice(["ant", "bee", "cat"], n, p=[0.5, 0.3, 0.2])
    middle = {"ant": [0, 0], "bee": [3, 0], "cat": [0, 4]}
    return np.array([middle[label] for label in y]) + rng.normal(0, 1, (n, 2)), y


def model(**changes):
    return GaussianNB(**{"bounds": (-5, 9), "classes": ["ant", "bee", "cat"], **changes})


def test_moments_and_priors_are_near_the_truth():
    X, y = planted(50_000)
    fitted = model().fit(X, y)
    theirs = naive_bayes.GaussianNB().fit(X, y)
    assert fitted.theta_ == pytest.approx(theirs.theta_, abs=0.1)
    assert fitted.var_ == pytest.approx(theirs.var_, rel=0.25)
    assert fitted.class_prior_ == pytest.approx(theirs.class_prior_, abs=0.01)
    assert fitted.score(X, y) > theirs.score(X, y) - 0.01
    assert fitted.predict_proba(X).sum(axis=1) == pytest.approx(1)


def test_classes_can_be_bought_and_labels_outside_a_stated_list_are_refused():
    X, y = planted()
    bought = model(classes="private", epsilon=2.0).fit(X, y)
    assert bought.classes_.tolist() == ["ant", "bee", "cat"]
    assert "the list of classes" in str(bought.report_)
    with pytest.raises(InvalidArgument, match="not among the classes"):
        model(classes=["ant", "bee"]).fit(X, y)
    with pytest.raises(InvalidArgument, match="must not come from the data"):
        model(classes=None).fit(X, y)


def test_a_class_without_records_is_possible_and_finite():
    X, y = planted(500)
    fitted = model(classes=["ant", "bee", "cat", "dog"]).fit(X, y)
    assert (fitted.class_prior_ > 0).all()
    assert np.isfinite(fitted.predict_log_proba(X)).all()


def test_priors_can_be_stated():
    X, y = planted()
    assert model(priors=[0.2, 0.3, 0.5]).fit(X, y).class_prior_ == pytest.approx([0.2, 0.3, 0.5])
    for wrong in ([0.5, 0.5], [0.5, 0.6, -0.1], [1, 1, 1], [0.5, 0.5, 0.0]):
        with pytest.raises(InvalidArgument, match="priors"):
            model(priors=wrong).fit(X, y)


def test_it_classifies_real_records():
    data = load_breast_cancer()
    # bounds that a pathologist could state: nuclei of 5 to 30 units, smoothness in percent, and so on
    columns = [0, 1, 4, 6, 7]
    bounds = [(5, 30), (5, 40), (0.05, 0.17), (0, 0.45), (0, 0.2)]
    X, y = data.data[:, columns], data.target
    scores = [GaussianNB(bounds=bounds, classes=[0, 1], epsilon=2.0).fit(X, y).score(X, y) for _ in range(5)]
    assert np.mean(scores) > 0.85
