"""What is computed for a charge, and what is said where that fails: not why, as the reason may depend on the data."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from discreet.engines.failures import shown_cause
from discreet.errors import EngineError, QueryFailed, SourceError

if TYPE_CHECKING:
    from collections.abc import Callable

    from discreet.ledger import Entry
    from discreet.query.data import Data
    from discreet.query.payer import Payer

__all__ = ["computed", "failed", "is_interrupt"]

T = TypeVar("T")


def computed(compute: Callable[[], T], *, data: Data, payer: Payer, entry: Entry, survey: bool = False) -> T:
    """What is computed for a charge; if that fails, no word of the reason is told, and the charge stays.

    `survey` says that it was a charge for bounds, before that for the question.
    """
    try:
        return compute()
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - its words may show values
        stopped = is_interrupt(error)
        problem = "KeyboardInterrupt" if stopped else type(error).__name__
        cause = shown_cause(error)
    failed(problem, data=data, payer=payer, entry=entry)
    if stopped:
        what = "what finding its bounds cost" if survey else "what it cost"
        raise KeyboardInterrupt(f"the question was stopped; {what} stays spent (entry {entry.id} of the ledger)")
    raise QueryFailed(entry.id, survey) from cause


def failed(problem: str, *, data: Data, payer: Payer, entry: Entry) -> None:
    """States that what was paid for failed; raises if that is because a file has changed, which is no secret."""
    payer.fail(entry, problem)
    try:
        data.check()
    except SourceError as error:
        advice = f"Nothing is shown, and what it cost stays spent (entry {entry.id} of the ledger). {error.advice}"
        raise SourceError(error.source, error.why, advice) from None


def is_interrupt(error: BaseException) -> bool:
    """Whether somebody has stopped the work: by Ctrl-C, or by interrupting the session."""
    return isinstance(error, KeyboardInterrupt) or (isinstance(error, EngineError) and error.kind == "interrupt")
