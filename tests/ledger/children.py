"""Processes that spend from a ledger and are killed; run as `python children.py SCENARIO ARGUMENTS…`.

One interpreter loads discreet and forks all the others, so that hundreds of them can die in a few seconds. What must
hold is asserted here, after every death; the tests look at the exit code and the counts that are printed.
"""

from __future__ import annotations

import functools
import json
import os
import random
import resource
import signal
import sqlite3
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from discreet import Budget, BudgetExceeded, Cost, Ledger
from discreet.errors import LedgerError, UnitMismatch

STEP = 0.001  # epsilon of one release; a thousand of them fit
COST = Cost.pure(STEP)
BUDGET = Budget(epsilon=1.0)


def answer_of(number: int) -> bytes:
    """What the release under this reservation shows."""
    return f"answer {number}".encode() * 50


def forked(work: Callable[[int], None]) -> tuple[int, int]:
    """A child that does the work and writes to a pipe; its process number and the end to read from."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(ours)
            work(theirs)
            os._exit(0)
        except BaseException as error:  # noqa: BLE001 (whatever it is, the parent must see it)
            print(f"child: {error!r}", file=sys.stderr)
            os._exit(3)
    os.close(theirs)
    return child, ours


def said(end: int) -> list[list[str]]:
    """The lines that a child wrote before it died, as words."""
    with os.fdopen(end, "rb") as pipe:
        return [line.decode().split() for line in pipe.read().splitlines(keepends=True) if line.endswith(b"\n")]


def say(end: int, *words: object) -> None:
    """One line, in one write: it is there or it is not."""
    os.write(end, (" ".join(map(str, words)) + "\n").encode())


def check(path: Path, lines: list[list[str]]) -> int:
    """The ledger is sound and lacks nothing that was seen outside of it; how many reservations it has."""
    ledger = Ledger.open(path)
    report = ledger.verify()
    stored = {entry.id: entry.state for entry in ledger.entries(kind="reserve")}
    for word, number in lines:
        assert int(number) in stored, f"the charge of entry {number} was granted and is gone"
        if word == "shown":
            assert stored[int(number)] == "released", f"entry {number} was shown and is not released"
            assert ledger.answer("d", f"f{number}") == answer_of(int(number))
    spent = ledger.spent("d")
    assert spent == len(stored) * COST, (spent, len(stored))
    assert abs(ledger.remaining("d") - (1.0 - STEP * len(stored))) < 1e-12
    assert report.reservations == len(stored)
    ledger.close()
    return len(stored)


def one_query(ledger: Ledger, end: int, between: Callable[[], None] = lambda: None) -> None:
    """Reserve, run, complete, show; every step that the outside sees is written to the pipe."""
    number = ledger.head.count + 1
    entry = ledger.reserve("d", COST, what="SELECT 1", fingerprint=f"f{number}")
    say(end, "granted", entry.id)
    between()
    answer = answer_of(entry.id)
    between()
    ledger.complete(entry, answer)
    between()
    say(end, "shown", entry.id)


def ticking(tick: Callable[[], None]) -> None:
    """Calls `tick` before and after every statement on connections that are opened from now on."""

    class Cursor(sqlite3.Cursor):
        def execute(self, *arguments: Any) -> Any:
            tick()
            found = super().execute(*arguments)
            tick()
            return found

    class Connection(sqlite3.Connection):
        def cursor(self, *_: Any) -> Any:
            return super().cursor(Cursor)

        def execute(self, *arguments: Any) -> Any:
            return self.cursor().execute(*arguments)

    sqlite3.connect = functools.partial(sqlite3.connect, factory=Connection)  # type: ignore[assignment]


def killed_at_every_statement(path: Path) -> int:
    """Kills a child before and after each SQL statement of a query, and between its steps."""
    Ledger.open(path).establish("d", BUDGET)
    for last in range(1, 1000):

        def work(end: int, last: int = last) -> None:
            ledger = Ledger.open(path)
            passed = 0

            def tick(*_: object) -> None:
                nonlocal passed
                passed += 1
                if passed == last:
                    os.kill(os.getpid(), signal.SIGKILL)

            ticking(tick)
            ledger.close()  # the next use opens it again
            one_query(ledger, end, tick)

        child, end = forked(work)
        lines = said(end)
        _, status = os.waitpid(child, 0)
        check(path, lines)
        if os.WIFEXITED(status):
            assert os.WEXITSTATUS(status) == 0
            return last - 1
    raise AssertionError("the query never ended")


def killed_at_random(path: Path, deaths: int, seed: str) -> int:
    """Kills children that ask one question after another, at times that nobody chose."""
    draw = random.Random(seed)
    ledger = Ledger.open(path)
    ledger.establish("d", BUDGET)
    ledger.close()

    def work(end: int) -> None:
        mine = Ledger.open(path)
        say(end, "granted", mine.reserve("d", COST).id)
        while True:
            one_query(mine, end)

    alive = 0
    for _ in range(deaths):
        child, end = forked(work)
        os.read(end, 1)  # it has begun
        time.sleep(draw.uniform(0, 0.012))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        lines = said(end)
        if lines:  # its first letter was read above
            lines[0][0] = "granted"
        count = check(path, lines)
        if count > 900:  # a new budget for the next ones
            path = path.with_name(path.name + "x")
            Ledger.open(path).establish("d", BUDGET)
        alive += len(lines)
    assert alive >= deaths  # each of them was granted something before it died
    return deaths


def hammered(path: Path, processes: int) -> dict[str, int]:
    """Many processes spend one budget until nothing is left; how many charges each of them was granted."""
    ledger = Ledger.open(path)
    ledger.establish("d", Budget(epsilon=0.3))
    ledger.limit("d", Budget(epsilon=0.05), analyst="p0")

    def work_as(name: str) -> Callable[[int], None]:
        def work(end: int) -> None:
            while True:  # on the object that was made before the fork
                try:
                    say(end, "granted", ledger.reserve("d", COST, analyst=name).id)
                except BudgetExceeded:
                    return

        return work

    children = {f"p{index}": forked(work_as(f"p{index}")) for index in range(processes)}
    granted = {}
    for name, (child, end) in children.items():
        lines = said(end)
        _, status = os.waitpid(child, 0)
        assert status == 0, (name, status)
        granted[name] = len(lines)
    assert ledger.spent("d") == sum(granted.values()) * COST
    ledger.verify()
    return granted


def opened_by_many(path: Path, processes: int) -> int:
    """Many processes make the same ledger at the same time, each resting a little between any two statements."""
    begin = time.monotonic() + 0.3

    def work(end: int) -> None:
        rests = random.Random(os.getpid())
        ticking(lambda: time.sleep(rests.uniform(0, 0.025)))
        time.sleep(max(0, begin - time.monotonic()) + rests.uniform(0, 1))
        ledger = Ledger.open(path)
        ledger.establish("d", BUDGET)
        say(end, "granted", ledger.reserve("d", COST).id)

    children = [forked(work) for _ in range(processes)]
    lines = [line for _, end in children for line in said(end)]
    assert all(os.waitpid(child, 0)[1] == 0 for child, _ in children)
    assert check(path, lines) == processes
    return processes


def protected_by_many(path: Path, processes: int) -> dict[str, int]:
    """Many processes open the same data for the first time, each for another unit, and spend; who could."""
    begin = time.monotonic() + 0.3

    def work_for(unit: str) -> Callable[[int], None]:
        def work(end: int) -> None:
            time.sleep(max(0, begin - time.monotonic()))
            ledger = Ledger.open(path)
            try:
                ledger.establish("d", BUDGET, protects={"d": unit})
            except UnitMismatch:
                return
            say(end, "granted", ledger.reserve("d", COST, protects={"d": unit}).id)

        return work

    children = {f"c{index}": forked(work_for(f"c{index}")) for index in range(processes)}
    lines = {unit: said(end) for unit, (_, end) in children.items()}
    assert all(os.waitpid(child, 0)[1] == 0 for child, _ in children.values())
    (winner,) = [unit for unit, said_by in lines.items() if said_by]
    assert Ledger.open(path).protected("d") == {"d": winner}
    check(path, lines[winner])
    return {unit: len(said_by) for unit, said_by in lines.items()}


def parted(path: Path) -> list[float]:
    """A child spends from an object that its parent made and closes; what is left, by the child and by a newcomer."""
    ledger = Ledger.open(path)
    ledger.establish("d", BUDGET)
    closed, told = os.pipe()

    def work(end: int) -> None:
        ledger.reserve("d", COST)
        say(end, "granted")
        os.read(closed, 1)
        for _ in range(10):
            ledger.reserve("d", COST)
        say(end, ledger.remaining("d"))

    child, end = forked(work)
    os.read(end, len("granted\n"))
    ledger.close()
    os.write(told, b".")
    lines = said(end)
    assert os.waitpid(child, 0)[1] == 0
    with Ledger.open(path) as newcomer:
        newcomer.verify()
        return [float(lines[0][0]), newcomer.remaining("d")]


def forked_in_use(path: Path, children: int) -> int:
    """Threads spend while their process is forked again and again, and the children spend as well; how many charges."""
    ledger = Ledger.open(path)
    ledger.establish("d", Budget(epsilon=100.0))
    over, counts = threading.Event(), [0, 0]

    def spend(index: int) -> None:
        while not over.is_set():
            ledger.reserve("d", COST)
            counts[index] += 1

    threads = [threading.Thread(target=spend, args=(index,)) for index in range(len(counts))]
    for thread in threads:
        thread.start()

    def work(end: int) -> None:
        for _ in range(3):
            say(end, ledger.reserve("d", COST).id)

    granted = 0
    for _ in range(children):
        child, end = forked(work)
        granted += len(said(end))
        assert os.waitpid(child, 0)[1] == 0
    over.set()
    for thread in threads:
        thread.join()
    ledger.close()
    with Ledger.open(path) as newcomer:
        assert newcomer.verify().reservations == granted + sum(counts)
    return granted


def forked_inside(path: Path) -> list[str]:
    """A process is forked in the middle of a transaction: what the child is told, and what is left to the parent."""
    ledger = Ledger.open(path)
    ledger.establish("d", BUDGET)

    def work(end: int) -> None:
        try:
            ledger.reserve("d", COST)
        except LedgerError as error:
            say(end, error)

    with ledger._store.writing() as connection:
        connection.exec_driver_sql("UPDATE totals SET totals = totals")
        child, end = forked(work)
        lines = said(end)
        os.waitpid(child, 0)
    ledger.reserve("d", COST)
    return [" ".join(lines[0]), str(ledger.remaining("d"))]


def full(path: Path, limit: int) -> dict[str, object]:
    """Spends until the file system refuses to grow (files of this process, if `limit` > 0, else the disk itself)."""
    ledger = Ledger.open(path)
    ledger.establish("d", BUDGET)
    if limit:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    lines = []
    message = ""
    try:
        for _ in range(900):
            entry = ledger.reserve("d", COST, what="x" * 2000, fingerprint=f"f{ledger.head.count + 1}")
            lines.append(["granted", str(entry.id)])
            ledger.complete(entry, answer_of(entry.id))
            lines.append(["shown", str(entry.id)])
    except LedgerError as error:
        message = str(error)
    if limit:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    return {"message": message, "lines": lines}


def unprivileged(path: Path, write: bool) -> str:
    """What somebody is told who may read but not write."""
    if os.geteuid() == 0:
        os.setgid(65534)
        os.setuid(65534)
    try:
        ledger = Ledger.open(path, read_only=not write)
        if write:
            ledger.reserve("d", COST)
            return "written"
        return f"{ledger.remaining('d')} {ledger.verify().reservations}"
    except LedgerError as error:
        return str(error)


def looked_at(path: Path) -> list[float]:
    """Somebody who may not write looks before, while and after somebody who may does: what they see is left."""
    with Ledger.open(path) as ledger:
        ledger.establish("d", BUDGET)
    path.chmod(0o644)
    ours, theirs = os.pipe()

    def work(end: int) -> None:
        os.setgid(65534)
        os.setuid(65534)
        looking = Ledger.open(path, read_only=True)
        for _ in range(3):
            say(end, looking.remaining("d"))
            os.read(ours, 1)

    child, end = forked(work)
    seen = [os.read(end, 100)]
    with Ledger.open(path) as ledger:
        ledger.reserve("d", COST)
        os.write(theirs, b".")
        seen.append(os.read(end, 100))
        ledger.reserve("d", COST)
    os.write(theirs, b".")
    seen.append(os.read(end, 100))
    os.write(theirs, b".")
    assert os.waitpid(child, 0)[1] == 0
    return [float(line) for line in seen]


if __name__ == "__main__":
    scenario, place, *rest = sys.argv[1:]
    scenarios: dict[str, Callable[..., object]] = {
        "statements": lambda: killed_at_every_statement(Path(place)),
        "random": lambda: killed_at_random(Path(place), int(rest[0]), rest[1]),
        "hammer": lambda: hammered(Path(place), int(rest[0])),
        "opening": lambda: opened_by_many(Path(place), int(rest[0])),
        "units": lambda: protected_by_many(Path(place), int(rest[0])),
        "parted": lambda: parted(Path(place)),
        "forking": lambda: forked_in_use(Path(place), int(rest[0])),
        "inside": lambda: forked_inside(Path(place)),
        "looking": lambda: looked_at(Path(place)),
        "full": lambda: full(Path(place), int(rest[0])),
        "unprivileged": lambda: unprivileged(Path(place), rest[0] == "write"),
    }
    print(json.dumps(scenarios[scenario]()))
