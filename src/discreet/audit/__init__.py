"""Attempts to break a claim: the conformance suite for anybody's mechanism."""

from discreet.audit.check import check
from discreet.audit.events import Evidence
from discreet.audit.report import Finding, Report

__all__ = ["Evidence", "Finding", "Report", "check"]
