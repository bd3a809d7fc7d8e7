"""The lines and tables that benchmarks/query.py prints."""

from __future__ import annotations

from statistics import median
from typing import Any

WIDTHS = (9, 2, 20, 11, 8, 8, 22, 8, 9)
HEADS = ("time", "cold", "memory", "median error", "released", "coverage")


def line(rows: str, question: str, contestant: str, report: dict[str, Any]) -> str:
    """One contestant and question; an empty report gives the heads."""
    if not report:
        cells = list(HEADS)
    elif "failure" in report:
        cells = [report["failure"], "", f"{report['peak_mb']:.0f} MB" if "peak_mb" in report else "", "", "", ""]
    else:
        cells = [
            seconds(report["median_s"]),
            seconds(report["cold_s"]) if "cold_s" in report else "",
            f"{report['peak_mb']:.0f} MB",
            errors(report),
            f"{report['released']:g}",
            " ".join(f"{c:.3f}" for c in report.get("coverage", {}).values()),
        ]
    return "  ".join(c.rjust(w) for c, w in zip((rows, question, contestant, *cells), WIDTHS, strict=True)).rstrip()


def summary(reports: list[dict[str, Any]], rows: int) -> str:
    """The tables of times, errors and memory, in Markdown, and the ratios; the bars are judged by these."""
    names = list(dict.fromkeys(r["contestant"] for r in reports))
    questions = list(dict.fromkeys(r["question"] for r in reports))
    found = {(r["question"], r["contestant"]): r for r in reports}
    names = [n for n in names if any("median_s" in found.get((q, n), {}) for q in questions)]
    parts = []
    titles = (
        ("time", _time),
        ("start of the process to the first answer", _cold),
        ("median relative error", errors),
        ("peak memory", _memory),
    )
    for title, shown in titles:
        parts.append(f"\n{rows:,} rows: {title}\n")
        parts.append(f"| | {' | '.join(names)} |")
        parts.append("|---" * (len(names) + 1) + "|")
        for question in questions:
            cells = [_cell(found.get((question, name), {}), shown) for name in names]
            parts.append(f"| {question} | {' | '.join(cells)} |")
    parts += _ratios(found, questions, names)
    return "\n".join(parts)


def seconds(value: float) -> str:
    """Milliseconds below a second, else seconds."""
    return f"{1000 * value:.1f} ms" if value < 0.1 else f"{value:.2f} s" if value < 10 else f"{value:.0f} s"


def errors(report: dict[str, Any]) -> str:
    """The errors of the released columns, in percent."""
    return ", ".join(f"{100 * e:.2g} %" if e < 1 else f"{100 * e:.0f} %" for e in report["errors"].values())


def _time(report: dict[str, Any]) -> str:
    return seconds(report["median_s"])


def _cold(report: dict[str, Any]) -> str:
    return seconds(report["cold_s"]) if "cold_s" in report else ""


def _memory(report: dict[str, Any]) -> str:
    return f"{report['peak_mb']:.0f} MB"


def _cell(report: dict[str, Any], shown: Any) -> str:
    if "median_s" in report:
        return str(shown(report))
    return str(report.get("failure", ""))[:40]


def _ratios(found: dict[tuple[str, str], dict[str, Any]], questions: list[str], names: list[str]) -> list[str]:
    """How discreet stands to the references and to each peer."""
    parts = [""]
    pairs = [("discreet", "floor"), ("discreet by row", "raw"), ("discreet by row", "raw anew")]
    pairs += [(name, "discreet") for name in names if not name.startswith(("raw", "floor", "discreet"))]
    measures = [("time", "median_s", "median_s", pairs), ("CPU time", "median_cpu_s", "median_cpu_s", pairs)]
    measures.append(("time of the first answers of ledgers,", "first_s", "median_s", pairs[:1]))
    for measure, field, by, compared in measures:
        for above, below in compared:
            both = [q for q in questions if field in found.get((q, above), {}) and by in found.get((q, below), {})]
            ratios = {q: found[q, above][field] / found[q, below][by] for q in both}
            if ratios:
                each = ", ".join(f"{q} {r:.3g}" for q, r in ratios.items())
                middle, most = median(ratios.values()), max(ratios.values())
                parts.append(f"{measure} of {above} / {below}: median {middle:.3g}, at most {most:.3g} ({each})")
    for name in ("discreet", "discreet by row"):
        cold = [found[q, name]["cold_s"] for q in questions if "cold_s" in found.get((q, name), {})]
        if cold:
            parts.append(f"first answer of {name}: median {seconds(median(cold))}, at most {seconds(max(cold))}")
    return parts
