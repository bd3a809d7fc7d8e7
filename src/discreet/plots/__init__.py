"""Pictures of trade-off curves, privacy profiles, loss distributions, and answers; needs `discreet[plots]`.

`cost.tradeoff().plot()`, `cost.profile().plot()`, `cost.loss().plot()` and `answer.plot()` end here, in `draw`. Every
function returns Matplotlib's axes, takes axes to draw on, and writes a file when given a path. Of costs, what is drawn
are the certified values.
"""

from discreet.plots.compare import compare, compare_accountants
from discreet.plots.dispatch import draw
from discreet.plots.error_bars import draw_error_bars
from discreet.plots.loss import draw_loss
from discreet.plots.personal import draw_personal
from discreet.plots.profile import draw_profile
from discreet.plots.tradeoff import draw_tradeoff

__all__ = [
    "compare",
    "compare_accountants",
    "draw",
    "draw_error_bars",
    "draw_loss",
    "draw_personal",
    "draw_profile",
    "draw_tradeoff",
]
