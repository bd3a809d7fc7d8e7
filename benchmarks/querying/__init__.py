"""The visits table, the questions and the contestants of benchmarks/query.py."""
