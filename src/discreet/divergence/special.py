"""SciPy's special functions, each loaded with its first call: their import takes longer than that of NumPy.

The first answer to a question and the simplest readings of a cost need none of them: they use `divergence.normal`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scipy.special import (
        betainc,
        betaincinv,
        chdtri,
        erf,
        erfc,
        erfcx,
        expit,
        gammaincinv,
        gammaln,
        ive,
        log_expit,
        log_ndtr,
        logsumexp,
        ndtr,
        ndtri,
        ndtri_exp,
    )
else:

    def _deferred(name: str) -> Any:
        found = None

        def call(*arguments: Any, **options: Any) -> Any:
            nonlocal found
            if found is None:
                from scipy import special

                found = getattr(special, name)
            return found(*arguments, **options)

        return call

    betainc, betaincinv, chdtri = map(_deferred, ("betainc", "betaincinv", "chdtri"))
    erf, erfc, erfcx, expit = map(_deferred, ("erf", "erfc", "erfcx", "expit"))
    gammaincinv, gammaln, ive = map(_deferred, ("gammaincinv", "gammaln", "ive"))
    log_expit, log_ndtr, logsumexp = map(_deferred, ("log_expit", "log_ndtr", "logsumexp"))
    ndtr, ndtri, ndtri_exp = map(_deferred, ("ndtr", "ndtri", "ndtri_exp"))

__all__ = [
    "betainc",
    "betaincinv",
    "chdtri",
    "erf",
    "erfc",
    "erfcx",
    "expit",
    "gammaincinv",
    "gammaln",
    "ive",
    "log_expit",
    "log_ndtr",
    "logsumexp",
    "ndtr",
    "ndtri",
    "ndtri_exp",
]
