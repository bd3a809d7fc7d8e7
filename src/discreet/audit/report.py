"""What an audit found: one finding per check, each passed, failed or skipped with a reason."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, Literal

from discreet.errors import AuditFailed

if TYPE_CHECKING:
    from discreet.audit.events import Evidence

__all__ = ["Finding", "Report", "Verdict"]

Verdict = Literal["passed", "failed", "skipped"]
_MARKS: dict[str, str] = {"passed": "✓", "failed": "✗", "skipped": "–"}


@dataclass(frozen=True)
class Finding:
    """The outcome of one check."""

    check: str
    verdict: Verdict
    message: str
    evidence: Evidence | None = None
    """The event that came closest to refuting the claim, or did; None for checks that count nothing."""

    def to_dict(self) -> dict[str, Any]:
        """The finding as JSON values."""
        described: dict[str, Any] = {"check": self.check, "verdict": self.verdict, "message": self.message}
        if self.evidence is not None:
            e = self.evidence
            described["evidence"] = {
                "event": e.event,
                "likely": e.likely,
                "unlikely": e.unlikely,
                "releases": e.releases,
                "at_least": e.at_least,
                "at_most": e.at_most,
                "allowed": e.allowed,
            }
        return described


@dataclass(frozen=True, repr=False)
class Report:
    """All findings about one mechanism.

    A mechanism that is what it says fails with probability at most `false_alarm`, whatever was counted: all bounds hold
    together with probability `confidence`. A mechanism that passes has not been proved private; `epsilon_measured` says
    how far the counts reach.
    """

    subject: str
    findings: tuple[Finding, ...]
    draws: int
    """Releases drawn on each input of each pair."""
    false_alarm: float
    delta: float
    epsilon_claimed: float
    """The claimed epsilon at this delta."""
    epsilon_measured: float
    """Lower bound of the true epsilon at this delta, from the same counts."""

    @property
    def passed(self) -> bool:
        """Whether no check failed."""
        return not self.failures

    @property
    def failures(self) -> tuple[Finding, ...]:
        """The checks that failed."""
        return tuple(finding for finding in self.findings if finding.verdict == "failed")

    @property
    def confidence(self) -> float:
        """The probability with which all bounds hold together."""
        return 1 - self.false_alarm

    def raise_for_failures(self) -> None:
        """Raise `AuditFailed` if any check failed; for use in the tests of a mechanism."""
        if self.failures:
            raise AuditFailed(self.subject, tuple(f"{finding.check}: {finding.message}" for finding in self.failures))

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON values."""
        return {
            "subject": self.subject,
            "passed": self.passed,
            "draws": self.draws,
            "false_alarm": self.false_alarm,
            "delta": self.delta,
            "epsilon_claimed": self.epsilon_claimed,
            "epsilon_measured": self.epsilon_measured,
            "findings": [finding.to_dict() for finding in self.findings],
        }

    def __repr__(self) -> str:
        number = len(self.failures)
        verdict = "passed" if self.passed else f"FAILED {number} check{'s' if number > 1 else ''}"
        width = max(len(finding.check) for finding in self.findings)
        lines = [f"{_MARKS[finding.verdict]} {finding.check:{width}}  {finding.message}" for finding in self.findings]
        return "\n".join([f"{self.subject} {verdict}", *lines, self._footer()])

    def _footer(self) -> str:
        return (
            f"epsilon at delta = {self.delta:g}: claimed {self.epsilon_claimed:.6g}, measured at least "
            f"{self.epsilon_measured:.6g} ({self.draws} releases on each input, false alarm {self.false_alarm:g})"
        )

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{_MARKS[finding.verdict]}</td><th style='text-align:left'>{escape(finding.check)}</th>"
            f"<td style='text-align:left'>{escape(finding.message)}</td></tr>"
            for finding in self.findings
        )
        title = escape(self.subject)
        verdict = "passed" if self.passed else "<b>failed</b>"
        return f"<p>{title}: {verdict}</p><table>{rows}</table><p>{escape(self._footer())}</p>"
