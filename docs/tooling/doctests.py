"""Shows the interactive examples of docstrings as code: an extension of griffe, which reads them for the site."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import griffe

if TYPE_CHECKING:
    from typing import Any

EXAMPLE = re.compile(r"(?:^[ ]*>>> .*\n(?:[ ]*\S.*\n?)*)+", re.MULTILINE)


class Doctests(griffe.Extension):
    """Fences every run of `>>>` lines, with the output below it, as an interactive session."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite the docstring of one object."""
        if obj.docstring is not None and ">>> " in obj.docstring.value:
            obj.docstring.value = EXAMPLE.sub(lambda run: f"```pycon\n{run[0].rstrip()}\n```\n", obj.docstring.value)
