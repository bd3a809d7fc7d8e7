"""All Python on the pages of README.md and docs/ runs, and prints what the page says it prints.

The convention, which CONTRIBUTING.md explains to authors:

- the ```python blocks of one page run from top to bottom in one namespace;
- `expression  # → text` says that the expression's repr is `text`; `…` stands for anything;
- `statement  # → raises Name` says that the statement raises `Name`;
- a ```text block right after a ```python block is what that block prints; `…` stands for anything.
"""

from __future__ import annotations

import ast
import contextlib
import io
import re
import sys
import textwrap
import tokenize
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
ARROW = re.compile(r"#\s*→\s*(?P<expected>.*?)\s*$")
FENCE = re.compile(r"^(?P<indent>[ ]*)(?P<fence>`{3,}|~{3,})[ ]*(?P<language>[\w+-]*)")


@dataclass(frozen=True)
class Block:
    """A fenced block of a page: its language, its text, its first line, and whether it directly follows another."""

    language: str
    text: str
    line: int
    follows: Block | None


def blocks(markdown: str) -> list[Block]:
    """The fenced blocks of a page, in order."""
    found: list[Block] = []
    lines = markdown.splitlines()
    number, previous = 0, None
    while number < len(lines):
        opening = FENCE.match(lines[number])
        if not opening:
            if lines[number].strip():
                previous = None
            number += 1
            continue
        start = number + 1
        closing = re.compile(rf"^[ ]*{re.escape(opening['fence'])}{re.escape(opening['fence'][0])}*[ ]*$")
        number = start
        while number < len(lines) and not closing.match(lines[number]):
            number += 1
        text = textwrap.dedent("\n".join(lines[start:number])) + "\n"
        previous = Block(opening["language"], text, start + 1, previous)
        found.append(previous)
        number += 1
    return found


def expectations(source: str) -> dict[int, str]:
    """The text after each arrow, by line number."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    matches = ((token.start[0], ARROW.match(token.string)) for token in tokens if token.type == tokenize.COMMENT)
    return {line: match["expected"] for line, match in matches if match}


def agrees(actual: str, expected: str) -> bool:
    """Whether the texts are equal up to trailing spaces, with … standing for anything."""
    tidy = ["\n".join(line.rstrip() for line in text.strip("\n").splitlines()) for text in (actual, expected)]
    return re.fullmatch(".*".join(map(re.escape, tidy[1].split("…"))), tidy[0], re.DOTALL) is not None


def exception_names(statement: ast.stmt, namespace: dict[str, object], page: str) -> list[str]:
    """The class of the exception that the statement raises, and its parents; empty if it raises none."""
    try:
        exec(compile(ast.Module([statement], []), page, "exec"), namespace)
    except Exception as error:  # noqa: BLE001 - any exception may be promised
        return [parent.__name__ for parent in type(error).__mro__]
    return []


def run(block: Block, namespace: dict[str, object], page: str) -> str:
    """Run a block statement by statement, check its arrows, and return what it printed."""
    expected = expectations(block.text)
    tree = ast.parse(block.text)
    printed = io.StringIO()
    for statement in tree.body:
        promise = expected.pop(statement.end_lineno or statement.lineno, None)
        ast.increment_lineno(statement, block.line - 1)
        where = f"{page}:{statement.lineno}"
        with contextlib.redirect_stdout(printed):
            if promise is None:
                exec(compile(ast.Module([statement], []), page, "exec"), namespace)
            elif promise.startswith("raises "):
                names = exception_names(statement, namespace, page)
                assert promise.removeprefix("raises ") in names, f"{where} raises {names[:1]}, the page says {promise}"
            else:
                assert isinstance(statement, ast.Expr), f"{where}: an arrow needs an expression, not a statement"
                value = eval(compile(ast.Expression(statement.value), page, "eval"), namespace)
                assert agrees(repr(value), promise), f"{where} gives {value!r}, the page says {promise}"
    assert not expected, f"{page}: an arrow stands inside a statement, where nothing checks it: {expected}"
    return printed.getvalue()


def check_page(markdown: str, page: str) -> None:
    """Run every Python block of a page in one namespace, and compare the text blocks that follow them."""
    namespace: dict[str, object] = {"__name__": "__page__"}
    printed: dict[int, str] = {}
    for block in blocks(markdown):
        assert block.language not in {"py", "python3", "pycon"}, f"{page}:{block.line}: write ```python, which is run"
        if block.language == "python":
            printed[block.line] = run(block, namespace, page)
        elif block.language == "text" and block.follows is not None and block.follows.language == "python":
            output = printed[block.follows.line]
            assert agrees(output, block.text), (
                f"{page}:{block.line}: the code prints\n{output}\nthe page says\n{block.text}"
            )


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_code_on_the_page_runs_and_gives_what_the_page_says(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    try:
        check_page(path.read_text(encoding="utf-8"), path.relative_to(ROOT).as_posix())
    finally:
        if "matplotlib.pyplot" in sys.modules:
            sys.modules["matplotlib.pyplot"].close("all")


GOOD = {
    "one namespace": "```python\nx = 2\n```\nand\n```python\nassert x == 2\n```\n",
    "exact value": "```python\n1 + 1  # → 2\n```\n",
    "shortened value": "```python\n2 / 3  # → 0.666…\n```\n",
    "value over two lines": "```python\nmax(\n    1, 2\n)  # → 2\n```\n",
    "printed text": "```python\nprint('a', 1)\n```\n\n```text\na 1\n```\n",
    "shortened text": "```python\nprint('a\\nb\\nc')\n```\n```text\na\n…\nc\n```\n",
    "a text block elsewhere": "```python\nprint('a')\n```\nNot its output:\n```text\nb\n```\n",
    "an exception": "```python\nint('x')  # → raises ValueError\n1 + 1  # → 2\n```\n",
    "a parent of the exception": "```python\n[][1]  # → raises LookupError\n```\n",
    "indented block": "- item\n\n    ```python\n    1 + 1  # → 2\n    ```\n",
    "other languages": "```sh\nexit 1\n```\n",
    "a fence inside a longer fence": "````markdown\n```python\n1 / 0\n```\n````\n",
    "an arrow in a string": "```python\nx = '# → 3'\n```\n",
}
BAD = {
    "wrong value": "```python\n1 + 1  # → 3\n```\n",
    "prefix without dots": "```python\n2 / 3  # → 0.666\n```\n",
    "wrong text": "```python\nprint('a')\n```\n```text\nb\n```\n",
    "missing text": "```python\nx = 1\n```\n```text\nb\n```\n",
    "an exception nobody announced": "```python\n1 / 0\n```\n",
    "a promised exception that does not come": "```python\n1 + 1  # → raises ValueError\n```\n",
    "another exception": "```python\n1 / 0  # → raises ValueError\n```\n",
    "an arrow on an assignment": "```python\nx = 1  # → 1\n```\n",
    "an arrow inside a statement": "```python\nfor x in [1]:\n    x + 1  # → 3\n    pass\n```\n",
    "a language that would not be run": "```py\n1 + 1\n```\n",
}


@pytest.mark.parametrize("markdown", GOOD.values(), ids=GOOD.keys())
def test_checker_accepts(markdown: str) -> None:
    check_page(markdown, "page.md")


@pytest.mark.parametrize("markdown", BAD.values(), ids=BAD.keys())
def test_checker_rejects(markdown: str) -> None:
    with pytest.raises((AssertionError, ZeroDivisionError)):
        check_page(markdown, "page.md")
