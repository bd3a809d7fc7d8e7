"""The tree of exceptions: what each one is, what it says, and that it survives a process boundary."""

from __future__ import annotations

import builtins
import copy
import inspect
import pickle
import re

import pyarrow as pa
import pytest

from discreet import errors
from discreet.errors import (
    AdjacencyMismatch,
    AuditFailed,
    BudgetExceeded,
    CertificateError,
    DiscreetError,
    DiscreetWarning,
    EngineError,
    FitFailed,
    InvalidArgument,
    KeptBudget,
    LedgerCorrupt,
    LedgerError,
    MissingExtra,
    PolicyError,
    QueryFailed,
    QueryRefused,
    ReleaseFailed,
    SourceError,
    StorageError,
    UnitMismatch,
    UnknownStep,
    UnknownVersion,
    VolatileLedger,
    WideBracket,
)

# One of each, with the words that its message must contain.
EXAMPLES: list[tuple[Exception, list[str]]] = [
    (DiscreetError("refused"), ["refused"]),
    (InvalidArgument("epsilon", -1, "pass a number >= 0"), ["epsilon", "-1", "pass a number >= 0"]),
    (AdjacencyMismatch("add-remove", "replace-one"), ["'add-remove'", "'replace-one'", "grouped(2)"]),
    (
        CertificateError("epsilon at delta = 0", limit="unbounded loss", advice="Ask for delta > 0."),
        ["epsilon at delta = 0", "unbounded loss", "Ask for delta > 0."],
    ),
    (StorageError("no field 'kind'"), ["no field 'kind'"]),
    (UnknownVersion(99, 1), ["99", "up to 1", "pip install -U discreet"]),
    (
        BudgetExceeded(requested=0.5, remaining=0.25, unit="epsilon"),
        ["epsilon = 0.5", "epsilon = 0.25", "at most 0.25"],
    ),
    (
        PolicyError("policy.toml: tables.visits", "unit 'usr' is no column", "Did you mean 'user'?"),
        ["policy.toml: tables.visits: unit 'usr' is no column. Did you mean 'user'?"],
    ),
    (SourceError("visits.csv", "does not exist", "Pass a file."), ["visits.csv does not exist", "Pass a file."]),
    (EngineError("memory", "the engine ran out of memory. Give it more."), ["out of memory", "Give it more"]),
    (
        BudgetExceeded(
            requested=0.5, remaining=0.25, unit="rho", of="analyst 'ada' on 'visits'", until="2026-01-01T00:00:00Z"
        ),
        ["analyst 'ada' on 'visits'", "rho = 0.5", "until the period ends at 2026-01-01T00:00:00Z"],
    ),
    (
        UnitMismatch("shop", "visits", unit="row", recorded="user_id", whole="visits.user_id"),
        ["'visits' is 'user_id'", "with the unit 'row'", "another name"],
    ),
    (
        UnitMismatch("shop", "visits", unit=None, recorded="user_id", whole="visits.user_id"),
        ["as a public table", "another name"],
    ),
    (
        UnitMismatch("shop", "people", unit="id", recorded=None, whole="visits.user_id"),
        ["protects visits.user_id", "--table people=id", "ledger.protect('shop', {'people': 'id'}"],
    ),
    (LedgerError("a.db", "is locked", "Wait."), ["the ledger a.db is locked. Wait."]),
    (LedgerCorrupt("a.db", ("entry 3 was edited",)), ["a.db", "- entry 3 was edited", "backup"]),
    (
        QueryRefused(
            "no column 'cty'", advice="did you mean 'city'?", line=1, column=8, snippet="SELECT cty\n       ^^^"
        ),
        ["no column 'cty'", "line 1, column 8", "did you mean 'city'?", "SELECT cty", "^^^"],
    ),
    (UnknownStep("Selection", "groupby", "write group_by('city')"), ["'groupby'", "write group_by('city')"]),
    (QueryFailed(7), ["entry 7", "stays spent", "ask again"]),
    (ReleaseFailed(7, "value = a float is not allowed"), ["entry 7", "stays spent", "value = a float"]),
    (FitFailed("a solver", "Use another."), ["a solver", "stays spent", "Use another"]),
    (AuditFailed("MyNoise(1)", ("privacy: too likely",)), ["MyNoise(1)", "privacy: too likely", "Do not release"]),
    (MissingExtra("matplotlib", "plots"), ["matplotlib", "pip install 'discreet[plots]'"]),
    (DiscreetWarning("beware"), ["beware"]),
    (KeptBudget("ada", "Budget(epsilon=2.0)", "Budget(epsilon=1.0)"), ["'ada'", "epsilon=2.0", "ledger amend"]),
    (VolatileLedger("visits"), ["'visits'", "when this process ends", "ledger=':memory:'"]),
    (WideBracket("width 1e-3"), ["width 1e-3"]),
]
IDS = [type(example).__name__ for example, _ in EXAMPLES]


def test_every_class_of_the_module_is_public_and_has_an_example() -> None:
    defined = {
        name
        for name, value in vars(errors).items()
        if inspect.isclass(value) and value.__module__ == errors.__name__ and not name.startswith("_")
    }
    assert defined == set(errors.__all__) == set(IDS)


@pytest.mark.parametrize(("error", "words"), EXAMPLES, ids=IDS)
def test_message_names_what_happened_the_values_and_what_to_do(error: Exception, words: list[str]) -> None:
    for word in words:
        assert word in str(error)


@pytest.mark.parametrize(("error", "words"), EXAMPLES, ids=IDS)
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickling_keeps_class_message_and_fields(error: Exception, words: list[str], protocol: int) -> None:
    again = pickle.loads(pickle.dumps(error, protocol))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert vars(again) == vars(error)


@pytest.mark.parametrize(("error", "words"), EXAMPLES, ids=IDS)
def test_copying_keeps_class_message_and_fields(error: Exception, words: list[str]) -> None:
    for again in (copy.copy(error), copy.deepcopy(error)):
        assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))


def test_fields_hold_the_values_that_were_passed() -> None:
    assert vars(InvalidArgument("rate", 2, "pass less")) == {"argument": "rate", "value": 2, "advice": "pass less"}
    assert vars(AdjacencyMismatch("a", "b")) == {"left": "a", "right": "b"}
    assert vars(CertificateError("w", limit="l", advice="a")) == {"what": "w", "limit": "l", "advice": "a"}
    assert vars(UnknownVersion(9, 1)) == {"found": 9, "known": 1}
    assert vars(BudgetExceeded(requested=2.0, remaining=1.0, unit="rho")) == {
        "requested": 2.0,
        "remaining": 1.0,
        "unit": "rho",
        "unbounded": "",
        "of": "",
        "until": "",
        "question": False,
        "pure": None,
        "delta": None,
        "delta_left": None,
        "set_aside": None,
        "beside": "",
    }
    assert vars(LedgerError("a.db", "is locked", "Wait.")) == {
        "path": "a.db",
        "problem": "is locked",
        "advice": "Wait.",
    }
    assert LedgerCorrupt("a.db", ("entry 3 was edited",)).findings == ("entry 3 was edited",)
    assert vars(MissingExtra("torch", "torch")) == {"package": "torch", "extra": "torch"}


def test_errors_have_one_root_and_warnings_another() -> None:
    for error, _ in EXAMPLES:
        root = DiscreetWarning if isinstance(error, Warning) else DiscreetError
        assert isinstance(error, root)
    assert issubclass(DiscreetWarning, UserWarning)
    assert not issubclass(DiscreetWarning, DiscreetError)


def test_the_tree_drawn_in_the_docstring_is_the_tree() -> None:
    drawn: dict[str, tuple[str | None, str | None]] = {}
    path: list[str] = []
    for line in (errors.__doc__ or "").splitlines():
        match = re.match(r"    ((?:[│├└─ ]{4})*)([A-Z]\w+)\s*(?:\((?:also )?(\w+)\))?(?:\s|$)", line)
        if match:
            depth = len(match[1]) // 4
            path = [*path[:depth], match[2]]
            drawn[match[2]] = (path[-2] if depth else None, match[3])
    assert set(drawn) == set(errors.__all__)
    for name, (parent, builtin) in drawn.items():
        if parent is not None:
            assert issubclass(getattr(errors, name), getattr(errors, parent))
        if builtin is not None:
            assert issubclass(getattr(errors, name), getattr(builtins, builtin))


def test_rows_are_not_shown_in_the_message() -> None:
    error = InvalidArgument("unit", pa.array([4711, 4712]), "pass the name of a column")
    assert str(error) == "unit = a Int64Array is not allowed: pass the name of a column"


def test_a_huge_value_is_shortened_in_the_message_and_kept_in_the_field() -> None:
    value = "x" * 10_000
    error = InvalidArgument("adjacency", value, "choose another")
    assert len(str(error)) < 200
    assert "..." in str(error)
    assert error.value == value
