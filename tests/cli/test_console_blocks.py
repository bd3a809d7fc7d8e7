"""All ```console blocks in the documentation run and print what the page says.

The convention: lines that start with `$ ` are commands, the lines below them are what they print, standard error after
standard output; `…` stands for anything; `[exit 1]` is the exit code where it is not 0. The blocks of one page run from
top to bottom in one empty directory: `discreet` in this process, anything that needs a shell in one.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from cli.calling import call

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGES = [
    path
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    if BLOCK.search(path.read_text(encoding="utf-8"))
]


def sessions(markdown: str) -> list[tuple[str, str]]:
    """The commands of a page with what they should print."""
    found: list[tuple[str, str]] = []
    for block in BLOCK.findall(markdown):
        assert block.startswith("$ "), f"a console block starts with a command: {block[:60]}"
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            found.append((command, output))
    return found


def agrees(actual: str, expected: str) -> bool:
    """Whether the texts are equal up to space at the end, with … standing for anything."""
    return re.fullmatch(".*".join(map(re.escape, expected.strip().split("…"))), actual.strip(), re.DOTALL) is not None


def run(command: str, environment: dict[str, str]) -> str:
    """What a command prints, and its exit code where it is not 0."""
    if command.startswith("discreet ") and not re.search("[|<>;&$]", re.sub('"[^"]*"', "", command)):
        result = call(*shlex.split(command)[1:])
        assert result.exception is None or isinstance(result.exception, SystemExit)
        output, code = result.stdout + result.stderr, result.exit_code
    else:
        shell = ["/bin/sh", "-c", command]
        done = subprocess.run(shell, env=environment, capture_output=True, text=True, check=False)
        output, code = done.stdout + done.stderr, done.returncode
    return output + (f"[exit {code}]" if code else "")


def check(markdown: str, folder: Path) -> None:
    """Run the commands of a page and compare."""
    programs = folder / "programs"
    programs.mkdir()
    for name, arguments in {"discreet": "-m discreet ", "python": ""}.items():
        (programs / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {arguments}"$@"\n', encoding="utf-8")
        (programs / name).chmod(0o755)
    work = folder / "work"
    work.mkdir()
    environment = {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "80"}
    with contextlib.chdir(work):
        for command, expected in sessions(markdown):
            output = run(command, environment)
            assert agrees(output, expected), f"$ {command}\n{output}\nthe page says\n{expected}"


needs_a_shell = pytest.mark.skipif(not Path("/bin/sh").exists(), reason="there is no /bin/sh")


def test_the_page_about_the_command_line_is_checked() -> None:
    assert ROOT / "docs" / "how-to" / "command-line.md" in PAGES


@needs_a_shell
@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_the_commands_on_the_page_print_what_it_says(path: Path, tmp_path: Path) -> None:
    check(path.read_text(encoding="utf-8"), tmp_path)


@needs_a_shell
@pytest.mark.parametrize(
    "block",
    [
        "$ echo a\na\n",
        "$ echo a b c\na…c\n",
        "$ echo a\na\n$ echo b\nb\n",
        "$ false\n[exit 1]\n",
        "$ true\n",
        "$ echo a\n…\n",
    ],
)
def test_the_checker_accepts(block: str, tmp_path: Path) -> None:
    check(f"text\n\n```console\n{block}```\n", tmp_path)


@needs_a_shell
@pytest.mark.parametrize("block", ["$ echo a\nb\n", "$ false\n", "$ true\n[exit 1]\n", "$ echo a\n", "echo a\n"])
def test_the_checker_rejects(block: str, tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        check(f"```console\n{block}```\n", tmp_path)
