"""The conformance suite: everything that can be found out about a mechanism from outside."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from discreet.arguments import count, probability, unit_fraction
from discreet.audit.accuracy import error_holds
from discreet.audit.agreement import single_releases_agree
from discreet.audit.claim import Claim
from discreet.audit.counting import Sides, values_and_bits
from discreet.audit.description import cost_falls_with_noise, survives_storing
from discreet.audit.precision import off_lattice
from discreet.audit.refusals import refuses_bad_values
from discreet.audit.report import Finding, Report
from discreet.audit.subject import Subject
from discreet.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from discreet.accounting.cost import Cost
    from discreet.audit.events import Evidence
    from discreet.noise.generator import Generator

__all__ = ["DRAWS", "FALSE_ALARM", "check"]

DRAWS = 200_000
"""Releases on each input: 0.9 of the stated noise scale is caught with probability > 0.99 where epsilon >= 1."""

FALSE_ALARM = 1e-9


def check(
    mechanism: Any = None,
    *,
    release: Callable[..., Any] | None = None,
    releases: Callable[..., Any] | None = None,
    cost: Cost | None = None,
    inputs: Sequence[Any] | None = None,
    bad_values: Iterable[Any] | None = None,
    draws: int = DRAWS,
    delta: float | None = None,
    false_alarm: float = FALSE_ALARM,
    generator: Generator | None = None,
) -> Report:
    r"""Try to refute what a mechanism says about itself.

    Pass a mechanism (anything with `.release(value)` and `.cost`), or a function `release(value)` with the `cost` that
    it claims and a pair of neighbouring `inputs`. `releases(value, n)`, if there is one, gives n independent releases
    at once and saves the time of calling `release` n times.

    The checks: on neighbouring inputs no event is likelier than the cost allows, neither of values nor of low bits;
    the stated error holds; more noise costs less; storing loses nothing; bad values are refused before randomness is
    used. Releases that choose an event do not test it, bounds are exact, and a mechanism that is what it says fails
    with probability at most `false_alarm` in all.

    `delta` is where the report reads epsilon: 0 for a pure cost, else 1e-5. The neighbours must differ in one person's
    data, in the sense of the cost's adjacency; the audit can only see what they show.

    >>> from discreet import Cost
    >>> from discreet.noise import secure_generator
    >>> def coin(answer):  # tells the truth three times in four: epsilon = ln 3
    ...     return answer ^ (secure_generator().integer(2) == 0)
    >>> check(release=coin, cost=Cost.pure(1.1), inputs=(0, 1), draws=20_000, bad_values=[None]).passed
    True
    >>> check(release=coin, cost=Cost.pure(0.9), inputs=(0, 1), draws=20_000, bad_values=[None]).passed
    False
    """
    subject = Subject.of(mechanism, release, releases, cost)
    number = count("draws", draws, least=100)
    alarm = unit_fraction("false_alarm", false_alarm)
    if alarm < 1e-100:
        raise InvalidArgument("false_alarm", false_alarm, "pass a probability of at least 1e-100")
    pairs = subject.pairs(inputs)
    claim = Claim.of(subject.cost)
    at = claim.telling_delta() if delta is None else probability("delta", delta)

    before = [
        cost_falls_with_noise(mechanism, claim),
        survives_storing(mechanism, subject.cost),
        refuses_bad_values(subject, pairs[0][0], bad_values),
    ]
    values: list[Evidence] = []
    bits: list[Evidence] = []
    drawn: list[tuple[Any, Any]] = []
    share = alarm / 4  # for values, low bits, the error and single releases
    for left, right in pairs:
        sides = Sides(subject.draw(left, number, generator), subject.draw(right, number, generator))
        drawn += [(left, sides.left), (right, sides.right)]
        sides = sides.comparable()
        seen, seen_bits = values_and_bits(sides)
        miss = share / len(pairs)
        values += sides.evidence(seen, claim, miss=miss, delta=at)
        if seen_bits:
            bits += sides.evidence(seen_bits, claim, miss=miss, delta=at)
    findings = (
        _privacy("privacy", values),
        _precision(bits, drawn, getattr(mechanism, "granularity", None)),
        error_holds(mechanism, drawn, miss=share),
        single_releases_agree(subject, *drawn[0], miss=share, generator=generator),
        *before,
    )
    measured = max(evidence.epsilon(at) for evidence in (*values, *bits))
    return Report(subject.name, findings, number, alarm, at, claim.epsilon(at), measured)


def _privacy(check: str, evidence: list[Evidence]) -> Finding:
    worst = max(evidence, key=lambda found: found.at_least - found.allowed)
    if worst.refutes:
        return Finding(check, "failed", str(worst), worst)
    return Finding(check, "passed", f"none of {len(evidence) // 2} events is likelier than the cost allows", worst)


def _precision(evidence: list[Evidence], drawn: list[tuple[Any, Any]], granularity: object) -> Finding:
    check = "low bits"
    if not evidence:
        return Finding(check, "skipped", "the releases are not floats")
    if isinstance(granularity, float):
        wrong = sum(off_lattice(releases, granularity) for _, releases in drawn)
        if wrong:
            return Finding(check, "failed", f"{wrong} releases are no multiples of the granularity {granularity!r}")
    return _privacy(check, evidence)
