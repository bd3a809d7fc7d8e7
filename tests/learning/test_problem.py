"""What solvers are given: facts that are wrong and records that no lattice can hold are refused."""

import numpy as np
import pytest

from discreet.errors import InvalidArgument
from discreet.learning import Facts, Huber, Logistic, Problem, Softmax, Squared

LOSSES = [Logistic(), Softmax(outputs=3), Squared(1.0), Huber(1.0)]


@pytest.mark.parametrize("loss", ["logistic", Logistic, None])
def test_a_loss_must_be_one(loss: object) -> None:
    with pytest.raises(InvalidArgument, match=r"loss = .*such as Logistic\(\)"):
        Facts(loss=loss, features=2, row_norm=1.0)  # type: ignore[arg-type]


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("where", ["table", "targets"])
def test_nan_is_refused_wherever_it_stands(loss: Logistic, where: str) -> None:
    facts = Facts(loss=loss, features=2, row_norm=1.0)
    table, targets = np.full((3, 2), 0.25), np.array([0.0, 1.0, 1.0])
    Problem.of(facts, table, targets)
    {"table": table, "targets": targets}[where][1] = np.nan
    with pytest.raises(InvalidArgument, match=f"{where} = 'an array with NaN'"):
        Problem.of(facts, table, targets)


def test_infinite_rows_are_shortened_like_long_ones() -> None:
    facts = Facts(loss=Logistic(), features=2, row_norm=1.0)
    problem = Problem.of(facts, np.array([[np.inf, 0.0], [1e300, 1e300]]), np.array([0, 1]))
    assert np.isfinite(problem.rows.steps).all()
    assert (np.linalg.norm(problem.rows.steps, axis=1) <= facts.lattice.reach).all()


def test_text_is_refused_without_showing_it() -> None:
    facts = Facts(loss=Logistic(), features=2, row_norm=1.0)
    with pytest.raises(InvalidArgument, match="labels as 0, 1, 2") as refused:
        Problem.of(facts, np.zeros((2, 2)), np.array(["secret", "other"]))
    assert "secret" not in str(refused.value)


def test_lists_and_frames_are_read() -> None:
    pandas = pytest.importorskip("pandas")
    facts = Facts(loss=Logistic(), features=2, row_norm=1.0)
    rows, labels = [[0.5, 0.0], [0.0, 0.25]], [False, True]
    one = Problem.of(facts, rows, labels)  # type: ignore[arg-type]
    two = Problem.of(facts, pandas.DataFrame(rows), pandas.Series(labels))
    assert np.array_equal(one.rows.steps, two.rows.steps)
    assert one.targets.tolist() == two.targets.tolist() == [0.0, 1.0]
