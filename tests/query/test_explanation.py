"""What is said about the error before anything is paid."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest

from discreet import Budget, Curator
from discreet.errors import InvalidArgument

BOUND = r"-([\d.]+) to \+([\d.]+) times the bound on one unit that is chosen"


@pytest.mark.filterwarnings("ignore::discreet.errors.VolatileLedger")
def test_an_expected_error_is_a_number_or_a_multiple_of_the_bound_that_is_chosen() -> None:
    data = pa.table({"u": [1, 1, 2], "x": [1.0, 2.0, 3.0]})
    with Curator.open({"t": data}, unit="u", budget=Budget(epsilon=3.0)) as curator:
        text = "SELECT COUNT(*) AS n, COUNT(DISTINCT u) AS p FROM t"
        planned = curator.explain(text, epsilon=1)
        noise = planned.plans[0].noise_of_moment(0)
        assert planned.errors()["count(*)"] is None
        for wrong in (0.0, 1.0, 1.5, float("nan")):
            with pytest.raises(InvalidArgument, match="confidence"):
                planned.errors(wrong)
        found = re.search(rf"count\(\*\): {BOUND}", str(planned))
        assert found is not None
        low, high = map(float, found.groups())
        # one side of an interval of about 90 %, and five scales of the noise more on the other
        assert low == pytest.approx(noise * 2.31, rel=0.01)
        assert high - low == pytest.approx(5 * noise, rel=0.02)
        assert re.search(r"count\(DISTINCT u\): ± [\d.]+$", str(planned), re.MULTILINE)
