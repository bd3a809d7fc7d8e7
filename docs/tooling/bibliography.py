"""The bibliography: which keys a text cites, what docs/references.bib holds, and how the site shows both.

A citation looks like [Mironov 2017, Prop. 7]. Its key is the first author's surname and the year, in lower case and
without spaces, hyphens and diacritics: [Dong et al. 2022, Thm 4] is dong2022, [Erdős and Rényi 1959] is erdos1959.
Several citations in one pair of brackets are separated by semicolons.

MkDocs loads this file as a hook: it fills the page of references and links every citation to it. The tests load it to
find citations without an entry and entries without a citation.
"""

from __future__ import annotations

import html
import re
import unicodedata
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

BIBLIOGRAPHY = Path(__file__).resolve().parents[1] / "references.bib"
PLACE = "<!-- bibliography -->"
PAGE = "references.md"

BRACKETS = re.compile(r"\[([^\[\]]{4,300})\]")
CITATION = re.compile(
    r"^(?P<first>[^\W\d_][^\d,;&]*?)"  # the first author
    r"(?:,? (?:et al\.|and|&) ?[^\d]*?|, [A-Z][^\d]*?)? "  # the others
    r"(?P<year>(?:19|20)\d\d[a-z]?)(?:,.*)?$"  # the year, then anything after a comma
)
ENTRY = re.compile(r"^@\w+\{(?P<key>[^,\s]+),(?P<fields>.*?)^\}", re.MULTILINE | re.DOTALL)
FIELD = re.compile(r"^\s*(\w+)\s*=\s*\{(.*)\},?\s*$", re.MULTILINE)


@dataclass(frozen=True)
class Entry:
    """One work of the bibliography."""

    key: str
    fields: dict[str, str]

    @property
    def first_author(self) -> str:
        """The surname of the first author."""
        return self.fields["author"].split(" and ")[0].split(",")[0]

    def shown(self) -> str:
        """The entry as a line of Markdown."""
        authors = [" ".join(reversed(name.split(", ", 1))) for name in self.fields["author"].split(" and ")]
        names = authors[0] if len(authors) == 1 else f"{', '.join(authors[:-1])} and {authors[-1]}"
        parts = [names, f"*{plain(self.fields['title'])}*"]
        parts += [plain(self.fields[name]) for name in ("booktitle", "journal", "publisher") if name in self.fields]
        if "volume" in self.fields:
            number = f"({self.fields['number']})" if "number" in self.fields else ""
            parts[-1] += f" {self.fields['volume']}{number}"
        if "pages" in self.fields:
            parts[-1] += f", {self.fields['pages'].replace('--', '–')}"
        if "eprint" in self.fields:
            parts.append(f"[arXiv:{self.fields['eprint']}](https://arxiv.org/abs/{self.fields['eprint']})")
        return f"{'. '.join(parts)}, {self.fields['year']}."


def plain(text: str) -> str:
    """The text of a field without the braces that protect capitals."""
    return text.replace("{", "").replace("}", "")


def key_of(first_author: str, year: str) -> str:
    """The key of a first author's surname and a year."""
    decomposed = unicodedata.normalize("NFKD", first_author).lower()
    return "".join(letter for letter in decomposed if "a" <= letter <= "z") + year


def key_in(part: str) -> str | None:
    """The key that a part of a bracket cites, or None if it is not a citation."""
    match = CITATION.match(part.strip())
    return key_of(match["first"], match["year"]) if match and match["first"][0].isupper() else None


def citations(text: str) -> set[str]:
    """The keys of all citations in a text; line breaks and comment signs inside the brackets do not matter."""
    joined = re.sub(r"\s*\n\s*(?:#\s*)?", " ", text)
    keys = (key_in(part) for bracket in BRACKETS.finditer(joined) for part in bracket[1].split(";"))
    return {key for key in keys if key is not None}


def entries(text: str) -> list[Entry]:
    """The entries of a BibTeX text, in its order."""
    return [Entry(match["key"], dict(FIELD.findall(match["fields"]))) for match in ENTRY.finditer(text)]


def linked(content: str, known: set[str], target: str) -> str:
    """The HTML with every citation of a known key turned into a link to its entry."""

    def link(part: str) -> str:
        key, shown = key_in(" ".join(part.split())), html.escape(part.strip(), quote=False)
        return f'<a href="{target}#{key}">{shown}</a>' if key in known else shown

    def replace(bracket: re.Match[str]) -> str:
        inside = html.unescape(bracket[1])
        if "<" in bracket[1] or not citations(f"[{inside}]") & known:
            return bracket[0]
        return f"[{'; '.join(link(part) for part in inside.split(';'))}]"

    return BRACKETS.sub(replace, content)


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001
    """Fill the page of references."""
    if page.file.src_uri != PAGE:
        return markdown
    works = sorted(entries(BIBLIOGRAPHY.read_text(encoding="utf-8")), key=lambda entry: entry.key)
    return markdown.replace(PLACE, "\n".join(f'- <span id="{entry.key}"></span>{entry.shown()}' for entry in works))


def on_page_content(content: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001
    """Link the citations of a page to the page of references."""
    references = files.get_file_from_path(PAGE)
    if page.file.src_uri == PAGE or references is None:
        return content
    known = {entry.key for entry in entries(BIBLIOGRAPHY.read_text(encoding="utf-8"))}
    return linked(content, known, references.url_relative_to(page.file))
