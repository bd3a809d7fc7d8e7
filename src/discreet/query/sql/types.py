"""The types of DuckDB that a question may use, in families that decide which functions apply."""

from __future__ import annotations

import math
from dataclasses import dataclass

__all__ = ["BIGINT", "BOOLEAN", "DATE", "DOUBLE", "HUGEINT", "NULL", "TIMESTAMP", "VARCHAR", "SqlType", "type_named"]

INTEGER_BITS = {
    "TINYINT": (-(2**7), 2**7 - 1),
    "SMALLINT": (-(2**15), 2**15 - 1),
    "INTEGER": (-(2**31), 2**31 - 1),
    "BIGINT": (-(2**63), 2**63 - 1),
    "HUGEINT": (-(2**127), 2**127 - 1),
    "UTINYINT": (0, 2**8 - 1),
    "USMALLINT": (0, 2**16 - 1),
    "UINTEGER": (0, 2**32 - 1),
    "UBIGINT": (0, 2**64 - 1),
}
SYNONYMS = {
    "INT": "INTEGER",
    "INT1": "TINYINT",
    "INT2": "SMALLINT",
    "INT4": "INTEGER",
    "INT8": "BIGINT",
    "INT128": "HUGEINT",
    "LONG": "BIGINT",
    "SHORT": "SMALLINT",
    "SIGNED": "INTEGER",
    "FLOAT4": "FLOAT",
    "REAL": "FLOAT",
    "FLOAT8": "DOUBLE",
    "DOUBLE PRECISION": "DOUBLE",
    "TEXT": "VARCHAR",
    "STRING": "VARCHAR",
    "CHAR": "VARCHAR",
    "BPCHAR": "VARCHAR",
    "BOOL": "BOOLEAN",
    "LOGICAL": "BOOLEAN",
    "DATETIME": "TIMESTAMP",
    "TIMESTAMP WITHOUT TIME ZONE": "TIMESTAMP",
    "NUMERIC": "DECIMAL(18,3)",
    "DECIMAL": "DECIMAL(18,3)",
}
KINDS = {
    "FLOAT": "float",
    "DOUBLE": "float",
    "VARCHAR": "text",
    "BOOLEAN": "boolean",
    "DATE": "date",
    "TIMESTAMP": "timestamp",
    "TIMESTAMP_S": "timestamp",
    "TIMESTAMP_MS": "timestamp",
    "TIMESTAMP_NS": "timestamp",
    "NULL": "null",
}


@dataclass(frozen=True)
class SqlType:
    """A DuckDB type and its family.

    `kind` is "integer", "float", "decimal", "text", "boolean", "date", "timestamp", "null", or "other" for types that
    can only be counted, compared with themselves and grouped by.
    """

    name: str
    kind: str

    @property
    def numeric(self) -> bool:
        """Whether arithmetic applies."""
        return self.kind in ("integer", "float", "decimal")

    @property
    def temporal(self) -> bool:
        """Whether it is a date or a timestamp."""
        return self.kind in ("date", "timestamp")

    @property
    def range(self) -> tuple[float, float]:
        """The values that the type itself allows: exact integers for integers, no limit for everything else."""
        return INTEGER_BITS.get(self.name, (-math.inf, math.inf))

    @property
    def words(self) -> str:
        """The family as an analyst would say it."""
        return {"integer": "a whole number", "float": "a number", "decimal": "a number", "null": "NULL"}.get(
            self.kind, f"a {self.kind}" if self.kind != "other" else f"of type {self.name}"
        )


def type_named(name: str) -> SqlType:
    """The type that DuckDB calls `name`."""
    upper = " ".join(name.upper().split())
    upper = SYNONYMS.get(upper, upper)
    if upper in INTEGER_BITS:
        return SqlType(upper, "integer")
    if upper.endswith("]"):  # lists, of decimals too
        return SqlType(name, "other")
    if upper.startswith(("DECIMAL(", "NUMERIC(")):
        return SqlType("DECIMAL" + upper[upper.index("(") :].replace(" ", ""), "decimal")
    if upper.startswith("VARCHAR("):
        return SqlType("VARCHAR", "text")
    if upper.startswith("ENUM"):
        return SqlType(name, "text")
    return SqlType(upper if upper in KINDS else name, KINDS.get(upper, "other"))


BIGINT = type_named("BIGINT")
HUGEINT = type_named("HUGEINT")
DOUBLE = type_named("DOUBLE")
VARCHAR = type_named("VARCHAR")
BOOLEAN = type_named("BOOLEAN")
DATE = type_named("DATE")
TIMESTAMP = type_named("TIMESTAMP")
NULL = type_named("NULL")
