"""What commands write: files are whole or as they were, and what is in the way is said in words."""

from __future__ import annotations

import errno
import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.calling import call, process
from discreet import Ledger
from discreet.cli.writing import whole_file
from discreet.errors import InvalidArgument
from discreet.query.answer import Answer
from engines.sources import parquet
from query.open_shop import visits

FULL = Path("/dev/full")
ASK = ["query", "run", "visits.parquet", "SELECT COUNT(*) AS n FROM visits", "--unit", "user_id", "--epsilon", "0.5"]
BUDGET = ["--budget-epsilon", "3"]
needs_a_full_disk = pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("before", [None, "mine"])
def test_a_file_that_cannot_be_finished_is_as_it_was(folder: Path, before: str | None) -> None:
    if before is not None:
        Path("p.toml").write_text(before)

    def write_half(then: BaseException) -> None:
        with whole_file("p.toml", replace=True) as file:
            file.write("half")
            file.flush()
            raise then

    with pytest.raises(InvalidArgument, match=f"no space is left in {folder}"):
        write_half(OSError(errno.ENOSPC, "No space left on device"))
    with pytest.raises(KeyboardInterrupt):
        write_half(KeyboardInterrupt())
    assert {path.name: path.read_text() for path in folder.iterdir()} == ({} if before is None else {"p.toml": before})


def test_a_file_has_its_name_once_it_is_whole(folder: Path) -> None:
    with whole_file("p.toml") as file:
        file.write("all")
        assert not Path("p.toml").exists()
    assert {path.name: path.read_text() for path in folder.iterdir()} == {"p.toml": "all"}


def test_a_file_that_exists_is_replaced_on_request_alone_and_keeps_mode_and_links(folder: Path) -> None:
    Path("real.toml").write_text("mine")
    Path("real.toml").chmod(0o640)
    Path("p.toml").symlink_to("real.toml")
    with pytest.raises(InvalidArgument, match="exists, and is not written over"), whole_file("p.toml") as file:
        file.write("other")
    assert Path("real.toml").read_text() == "mine"
    with whole_file("p.toml", replace=True) as file:
        file.write("other")
    assert (Path("p.toml").is_symlink(), Path("real.toml").read_text()) == (True, "other")
    assert stat.S_IMODE(Path("real.toml").stat().st_mode) == 0o640
    assert len(list(folder.iterdir())) == 2


def test_a_private_file_is_its_owners_alone() -> None:
    for name, private, mode in (("open", False, 0o666), ("private", True, 0o600)):
        with whole_file(name, private=private) as file:
            file.write("x")
        now = os.umask(0)
        os.umask(now)
        assert stat.S_IMODE(Path(name).stat().st_mode) == mode & ~now


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.EACCES, "nothing may be written in"),
        (errno.EROFS, "nothing may be written in"),
        (errno.ENAMETOOLONG, "the name is too long"),
        (errno.EIO, "it cannot be written (Input/output error); name a file elsewhere"),
    ],
)
def test_what_is_in_the_way_is_said(monkeypatch: pytest.MonkeyPatch, number: int, words: str) -> None:
    def refuse(*_: object) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("discreet.cli.writing.os.open", refuse)
    with pytest.raises(InvalidArgument) as caught, whole_file("p.toml"):
        pass
    assert words in str(caught.value)
    assert "Errno" not in str(caught.value)


@pytest.mark.parametrize("arguments", [["-o", "new.toml"], ["-o", "old.toml", "--force"]])
def test_a_first_policy_is_whole_or_not_there(folder: Path, arguments: list[str]) -> None:
    parquet(folder / "visits.parquet", visits())
    Path("old.toml").write_text("mine")
    before = sorted(path.name for path in folder.iterdir())
    done = subprocess.run(
        [sys.executable, "-m", "discreet", "init", "visits.parquet", *arguments],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=_small_files,
    )
    assert (done.returncode, "no space is left" in done.stderr) == (1, True)
    assert sorted(path.name for path in folder.iterdir()) == before
    assert Path("old.toml").read_text() == "mine"


def _small_files() -> None:
    import resource  # not on every system

    resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))


@needs_a_full_disk
@pytest.mark.parametrize(
    ("options", "words", "charges"),
    [
        ([], "nothing was spent", 0),
        (["--json"], "the answer was paid for and is kept: ask again, and it costs nothing", 1),
        (["--json", "--no-reuse"], "ask again without --no-reuse, and it costs nothing", 1),
    ],
)
def test_an_answer_that_cannot_be_shown_is_not_lost(folder: Path, options: list[str], words: str, charges: int) -> None:
    parquet(folder / "visits.parquet", visits())
    with FULL.open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "discreet", *ASK, *BUDGET, *options],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
    assert Path("visits.ledger").exists() == bool(charges)  # made for the first charge
    again = process(*ASK, *BUDGET, "--json")
    with Ledger.open("visits.ledger", read_only=True) as books:
        assert len(list(books.entries(kind="reserve"))) == 1
    assert json.loads(again.stdout)["repeated"] == bool(charges)


def test_an_answer_that_is_stopped_while_it_is_shown_is_said_to_be_kept(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parquet(folder / "visits.parquet", visits())

    def stopped(*_: object, **__: object) -> str:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Answer, "show", stopped)
        done = call(*ASK, *BUDGET)
    assert done.exit_code == 130
    assert "Stopped: the command was stopped; the answer was paid for and is kept: ask again" in done.stderr
    assert json.loads(process(*ASK, *BUDGET, "--json").stdout)["repeated"]


def test_a_question_or_a_policy_that_may_not_be_read_is_no_question_of_encoding(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parquet(folder / "visits.parquet", visits())
    Path("q.sql").write_text("SELECT COUNT(*) FROM visits")
    Path("p.toml").write_text('name = "shop"')
    read = Path.read_text

    def guarded(name: str) -> Callable[..., str]:
        def reading(path: Path, *arguments: object, **named: object) -> str:
            if path.name == name:
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
            return read(path, *arguments, **named)  # type: ignore[arg-type]

        return reading

    monkeypatch.setattr(Path, "read_text", guarded("q.sql"))
    said = call(*[part if part[:6] != "SELECT" else "q.sql" for part in ASK], *BUDGET)
    assert (said.exit_code, "this user may not read the file q.sql" in " ".join(said.stderr.split())) == (2, True)
    monkeypatch.setattr(Path, "read_text", guarded("p.toml"))
    said = call("query", "tables", "p.toml")
    assert (said.exit_code, "p.toml: this user may not read the file" in said.stderr) == (1, True)
