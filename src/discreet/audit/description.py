"""What a mechanism says about itself: a cost that falls as noise grows, and a description that survives storing."""

from __future__ import annotations

import dataclasses
import json
import math
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.accounting.cost import Cost
from discreet.audit.report import Finding
from discreet.errors import DiscreetError, WideBracket

if TYPE_CHECKING:
    from discreet.audit.claim import Claim

__all__ = ["cost_falls_with_noise", "survives_storing"]

_READINGS = 5
_MORE_NOISE = {"noise_multiplier": 2.0, "scale": 2.0, "sigma": 2.0, "epsilon": 0.5, "rho": 0.5}
"""Fields that say how much noise there is, with a factor that makes it more; the first one found is changed."""


def cost_falls_with_noise(mechanism: Any, claim: Claim) -> Finding:
    """With more noise, delta is smaller at every epsilon."""
    check = "cost and noise"
    quieter = noisier(mechanism)
    if quieter is None:
        return Finding(check, "skipped", "the mechanism has no noisier() and no field such as noise_multiplier")
    cost = getattr(quieter, "cost", None)
    if not isinstance(cost, Cost):
        return Finding(check, "failed", f"with more noise it has no cost: {quieter!r}")
    places = np.unique(np.linspace(0, len(claim.epsilons) - 1, _READINGS).round().astype(int))
    epsilons, before = claim.epsilons[places], claim.deltas[places]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WideBracket)
        deltas = np.array([cost.delta(float(epsilon)) for epsilon in epsilons])
    above = np.flatnonzero(deltas > before * (1 + 1e-6) + 1e-12)
    if len(above):
        epsilon, more, less = (float(x[above[0]]) for x in (epsilons, deltas, before))
        return Finding(
            check,
            "failed",
            f"{quieter!r} has more noise and delta({epsilon:.4g}) = {more:.6g}, above {less:.6g} with less noise",
        )
    if deltas[0] >= claim.deltas[0] > 0:
        return Finding(
            check, "failed", f"{quieter!r} has more noise and the same advantage {deltas[0]:.6g}: the cost ignores it"
        )
    return Finding(check, "passed", f"more noise lowers the advantage from {claim.deltas[0]:.4g} to {deltas[0]:.4g}")


def noisier(mechanism: Any) -> Any:
    """The same mechanism with more noise, by its own method or by changing one field; None if neither is there."""
    own = getattr(mechanism, "noisier", None)
    if callable(own):
        return own()
    fields = _fields(mechanism)
    for name, factor in _MORE_NOISE.items():
        value = fields.get(name)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return _changed(mechanism, name, value * factor)
    return None


def _fields(mechanism: Any) -> dict[str, Any]:
    if callable(getattr(mechanism, "to_dict", None)):
        return dict(mechanism.to_dict())
    if dataclasses.is_dataclass(mechanism) and not isinstance(mechanism, type):
        return {field.name: getattr(mechanism, field.name) for field in dataclasses.fields(mechanism)}
    return {}


def _changed(mechanism: Any, name: str, value: object) -> Any:
    if callable(getattr(mechanism, "to_dict", None)) and callable(getattr(mechanism, "from_dict", None)):
        return type(mechanism).from_dict({**mechanism.to_dict(), name: value})
    return dataclasses.replace(mechanism, **{name: value})


def survives_storing(mechanism: Any, cost: Cost) -> Finding:
    """from_dict(to_dict()) through JSON is the same mechanism with the same cost; an unknown version is refused."""
    check = "storing"
    if not (callable(getattr(mechanism, "to_dict", None)) and callable(getattr(mechanism, "from_dict", None))):
        return Finding(check, "skipped", "the mechanism has no to_dict() and from_dict()")
    description = mechanism.to_dict()
    try:
        read = json.loads(json.dumps(description, allow_nan=False))
        again = type(mechanism).from_dict(read)
    except (TypeError, ValueError, DiscreetError) as error:
        return Finding(check, "failed", f"the description does not survive JSON: {error}")
    if again != mechanism or again.to_dict() != description:
        return Finding(check, "failed", f"JSON gives back {again!r}")
    if again.cost != cost:
        return Finding(check, "failed", f"read again, it costs {again.cost!r} instead of {cost!r}")
    version = description.get("version")
    if isinstance(version, int):
        spoiled: list[tuple[str, dict[str, Any]]] = [("version", {**description, "version": version + 1})]
    else:
        spoiled = []
    for name, value in description.items():
        if isinstance(value, float):
            below = (-value,) if name in _MORE_NOISE or "sensitivity" in name else ()  # a threshold may be negative
            spoiled += [(name, {**description, name: bad}) for bad in (math.nan, "much", *below)]
    for name, wrong in spoiled:
        if wrong[name] == description[name]:
            continue
        try:
            accepted = type(mechanism).from_dict(wrong)
        except (DiscreetError, ValueError, TypeError):
            continue
        if accepted != mechanism:  # a field that may be left out does no damage
            return Finding(check, "failed", f"from_dict accepts {name} = {wrong[name]!r}")
    return Finding(check, "passed", f"JSON gives back the same mechanism; {len(spoiled)} spoiled descriptions refused")
