"""The contestants of benchmarks/accounting.py, the questions they are asked, and the child that asks."""
