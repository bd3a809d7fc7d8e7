"""The peers of benchmarks/query.py, each driven by a script of its own in an environment of its own."""
