"""Benchmarks run as scripts, with their folder first on the path: none may hide a package that others import."""

from importlib.metadata import packages_distributions
from pathlib import Path
from sys import stdlib_module_names

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def test_no_benchmark_hides_a_package():
    names = {path.stem for path in BENCHMARKS.iterdir() if path.suffix == ".py" or path.is_dir()}
    assert "pnsgd" in names
    assert not names & (set(packages_distributions()) | set(stdlib_module_names))
