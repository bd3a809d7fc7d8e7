r"""Quantiles, MIN and MAX of many groups at once.

Values are put into cells of a public grid (`scale`). The engine returns the weight of every group and cell, an exact
integer (`cells`): a row of unit u weighs w_u = min(1, C / norm of the unit's numbers of rows), so that one unit moves
any sum over cells, as a vector over groups, by at most C. All the rest happens on these weights.

A quantile of order p is the place where

    S(t) = (1 - p) (weight at or below t) - p (weight above t)

changes sign (`statistic`); one unit changes S by at most max(p, 1 - p) C. MIN and MAX are where the weight at or below
(above) t comes to a few times the noise: the extreme value itself belongs to one person and cannot be told.

With Gaussian noise the place is found by `bisection`, with Laplace-like noise by a `choice`, and so with Gaussian noise
in groups that have few rows beyond the place. Either way the `answer` is a place on the grid with an interval around
it, and a doubt where there may be too few rows (`support`). `measure` does all of it for the quantiles of a plan.
"""
