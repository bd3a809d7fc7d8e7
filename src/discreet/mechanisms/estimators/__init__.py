"""Estimators: from all rows to a value with error bars and a cost."""
