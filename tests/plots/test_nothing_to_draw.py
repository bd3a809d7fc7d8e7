"""Costs without a spread of finite losses are refused with advice, not with an index error."""

from __future__ import annotations

import pytest

from discreet.accounting import Cost
from discreet.errors import InvalidArgument


@pytest.mark.parametrize("cost", [Cost.zero(), Cost.from_pair([1.0, 0.0], [0.0, 1.0])], ids=["zero", "leak"])
def test_a_loss_without_finite_spread_is_not_drawn(cost: Cost) -> None:
    with pytest.raises(InvalidArgument, match="profile"):
        cost.loss().plot()
