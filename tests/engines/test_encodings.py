"""CSV files in other encodings than UTF-8: everybody is counted, with the right letters where they are declared."""

from __future__ import annotations

import gzip
import os
import random
from pathlib import Path

import pytest

from discreet import Budget, Curator
from discreet.engines import DuckDBEngine
from discreet.engines.encodings import in_utf8, known_encoding
from discreet.errors import InvalidArgument, PolicyError, SourceError
from discreet.query import Policy
from engines.sources import csv, parquet

TEXT = "größe,stadt\n1,München\n2,Köln €\n3,Ulm\n"


def rows(path: Path, **given: str | None) -> list[tuple[object, ...]]:
    """What SQL reads of a file."""
    with DuckDBEngine() as engine:
        relation = engine.register("t", path, **given)  # type: ignore[arg-type]
        found = engine.table(f"SELECT * FROM {relation} ORDER BY 1")
        return list(zip(*found.to_pydict().values(), strict=True))


@pytest.mark.parametrize("encoding", ["windows-1252", "cp1252", "iso8859-15", "UTF-8"])
@pytest.mark.parametrize("packed", [False, True])
def test_a_declared_encoding_gives_the_right_letters(tmp_path: Path, encoding: str, packed: bool) -> None:
    path = tmp_path / ("t.csv.gz" if packed else "t.csv")
    path.write_bytes(gzip.compress(TEXT.encode(encoding)) if packed else TEXT.encode(encoding))
    name = known_encoding(encoding)
    with DuckDBEngine() as engine:
        relation = engine.register("t", path, encoding=name)
        assert [column for column, _ in engine.schema(relation)] == ["größe", "stadt"]
    assert rows(path, encoding=name) == [(1, "München"), (2, "Köln €"), (3, "Ulm")]


@pytest.mark.parametrize("encoding", [None, "utf-8"])
def test_bytes_that_are_no_text_cost_no_line(tmp_path: Path, encoding: str | None) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"a,b\n1,\xff\xfe\n2,M\xfcnchen\n3,x\n4,\xe4,\n5,\xf0\x9f\n6,\xc3\xa4\n7,\xe2\x82")
    assert rows(path, encoding=encoding) == [
        (1, "��"),
        (2, "M�nchen"),
        (3, "x"),
        (4, "�"),
        (5, "�"),
        (6, "ä"),
        (7, "�"),
    ]


def test_a_line_is_read_in_one_way_whatever_stands_in_the_others(tmp_path: Path) -> None:
    """Also where a letter is cut in two by the end of what is read at once."""
    draw = random.Random(3)
    lines = [bytes(draw.choice(b"abc\x80\xbf\xc3\xa4\xe2\x82\xf0\xff") for _ in range(9)) for _ in range(60)]
    alone = []
    for number, line in enumerate(lines):
        path = tmp_path / "one.csv"
        path.write_bytes(b"n,x\n%d,%s\n" % (number, line))
        alone += rows(path)
    path = tmp_path / "all.csv"
    for before in (0, 1, 2, 3):
        for many in (1, (1 << 22) // 100):
            head = b"n,x\n" + (b"-1,%s\n" % (b"y" * 96)) * (many - 1) + b"-1,%s\n" % (b"y" * before)
            path.write_bytes(head + b"".join(b"%d,%s\n" % pair for pair in enumerate(lines)))
            assert rows(path)[many:] == alone


def test_a_file_in_utf8_is_read_where_it_is(tmp_path: Path) -> None:
    path = csv(tmp_path / "t.csv", TEXT)
    (tmp_path / "folder").mkdir()
    assert in_utf8(str(path), encoding=None, folder=str(tmp_path / "folder")) == str(path)
    assert not list((tmp_path / "folder").iterdir())


def test_a_copy_can_be_read_by_this_user_alone_and_goes_with_the_engine(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(TEXT.encode("cp1252"))
    engine = DuckDBEngine()
    engine.register("t", path, encoding="cp1252")
    [copy] = Path(engine._folder).glob("*.csv")
    assert copy.stat().st_mode & 0o077 == 0
    assert copy.parent.stat().st_mode & 0o077 == 0
    engine.close()
    assert not copy.exists()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no device that is always full")  # noqa: PTH110
def test_a_disk_without_room_for_a_copy_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(TEXT.encode("cp1252"))
    monkeypatch.setattr(
        "discreet.engines.encodings.tempfile.NamedTemporaryFile",
        lambda **_: open("/dev/full", "wb", buffering=0),  # noqa: PTH123, SIM115
    )
    with pytest.raises(SourceError, match=r"there is no room for a copy that is\. Make room where TMPDIR points to"):
        in_utf8(str(path), encoding="cp1252", folder=str(tmp_path))


@pytest.mark.parametrize(
    "given",
    ["utf-16", "utf-7", "shift_jis", "gb18030", "rot13", "unicode_escape", "punycode", "nonsense", "", "a\0b", 5],
)
def test_what_is_no_encoding_of_single_bytes_is_refused(given: object) -> None:
    with pytest.raises(InvalidArgument, match="write one such as 'windows-1252', 'latin-1' or 'utf-8'"):
        known_encoding(given)


@pytest.mark.parametrize("given", ["latin-1", "ISO-8859-15", "cp437", "cp850", "mac-roman", "koi8-r", "ascii", "utf8"])
def test_encodings_of_single_bytes_are_known(given: str) -> None:
    assert b'\r\n\t;,|"az09'.decode(known_encoding(given)) == '\r\n\t;,|"az09'


def test_names_in_another_encoding_are_not_guessed(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(TEXT.encode("cp1252"))
    with pytest.raises(
        SourceError, match=r'is not in UTF-8\. Declare its encoding, in a policy or to Curator\.open: encoding="wind'
    ):
        rows(path)


def test_a_torn_file_is_refused(tmp_path: Path) -> None:
    whole = gzip.compress(TEXT.encode() * 1000)
    for torn in (whole[:-20], whole[:60] + b"\0" * 40 + whole[100:]):
        (tmp_path / "t.csv.gz").write_bytes(torn)
        with pytest.raises(SourceError, match="cannot be read"):
            rows(tmp_path / "t.csv.gz")


def test_policies_and_arguments_declare_it(tmp_path: Path) -> None:
    path = tmp_path / "leute.csv"
    lines = "".join(f"{n},{'München' if n % 3 else 'Köln'}\n" for n in range(3000))
    path.write_bytes(f"wer,ort\n{lines}".encode("cp1252"))
    keys = '["München", "Köln"]'
    text = 'name = "l"\n[tables.leute]\nsource = "leute.csv"\nunit = "wer"\nencoding = "windows-1252"\n'
    (tmp_path / "p.toml").write_text(f"{text}[tables.leute.columns]\nort = {{ keys = {keys} }}\n", encoding="utf-8")
    asked = "SELECT ort, COUNT(*) AS n FROM leute GROUP BY ort ORDER BY n"
    facts = {"ort": {"keys": ["München", "Köln"]}}
    with (
        Curator.open(tmp_path / "p.toml", budget=Budget(epsilon=9.0), ledger=":memory:") as stated,
        Curator.open(
            path, unit="wer", encoding="cp1252", columns=facts, budget=Budget(epsilon=9.0), ledger=":memory:"
        ) as given,
    ):
        for curator in (stated, given):
            (first, few), (second, many) = curator.sql(asked, epsilon=5.0).fetchall()
            assert (first, second) == ("Köln", "München")
            assert abs(few - 1000) < 60
            assert abs(many - 2000) < 60


def test_it_is_refused_for_what_has_none(tmp_path: Path) -> None:
    path = parquet(tmp_path / "visits.parquet")
    with pytest.raises(InvalidArgument, match="leave it out: only CSV files have one"):
        Policy.of(path, unit="user_id", encoding="latin-1")
    policy = tmp_path / "p.toml"
    table = 'name = "v"\n[tables.visits]\nsource = "visits.parquet"\nunit = "user_id"\n'
    policy.write_text(f'{table}encoding = "latin-1"\n')
    with pytest.raises(SourceError, match=r"has no encoding\. Leave it out: only CSV files have one"):
        Curator.open(policy, budget=Budget(epsilon=1.0), ledger=":memory:")
    policy.write_text(f'{table}encoding = "utf-16"\n')
    with pytest.raises(PolicyError, match=r"tables\.visits\.encoding: 'utf-16' is not allowed\. Write one such as"):
        Policy.load(policy)
