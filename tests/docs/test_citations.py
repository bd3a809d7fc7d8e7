"""Every citation such as [Mironov 2017, Prop. 7] has an entry in docs/references.bib, and every entry is cited.

The key of a citation is the first author's surname and the year, in lower case and without spaces, hyphens and
diacritics: [Dong et al. 2022, Thm 4] is dong2022, [Erdős and Rényi 1959] is erdos1959. Several citations in one
pair of brackets are separated by semicolons.
"""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BIBLIOGRAPHY = ROOT / "docs" / "references.bib"
BRACKETS = re.compile(r"\[([^\[\]]{4,300})\]")
CITATION = re.compile(
    r"^(?P<first>[^\W\d_][^\d,;&]*?)"  # the first author
    r"(?:,? (?:et al\.|and|&) ?[^\d]*?|, [A-Z][^\d]*?)? "  # the others
    r"(?P<year>(?:19|20)\d\d[a-z]?)(?:,.*)?$"  # the year, then anything after a comma
)
ENTRY = re.compile(r"^@(?P<kind>\w+)\{(?P<key>[^,\s]+),(?P<fields>.*?)^\}", re.MULTILINE | re.DOTALL)
REQUIRED = ("author", "title", "year")


def key_of(first_author: str, year: str) -> str:
    """The bibliography key of a first author and a year."""
    plain = unicodedata.normalize("NFKD", first_author)
    return "".join(letter for letter in plain.lower() if "a" <= letter <= "z") + year


def citations(text: str) -> set[str]:
    """The keys of all citations in a text; line breaks and comment signs inside the brackets do not matter."""
    joined = re.sub(r"\s*\n\s*(?:#\s*)?", " ", text)
    keys = set()
    for bracket in BRACKETS.finditer(joined):
        for part in bracket[1].split(";"):
            match = CITATION.match(part.strip())
            if match and match["first"][0].isupper():
                keys.add(key_of(match["first"], match["year"]))
    return keys


def cited() -> dict[str, list[str]]:
    """Every key cited in the repository, with the files that cite it."""
    files = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    for folder in ("src", "tests", "benchmarks", "examples"):
        files += (ROOT / folder).rglob("*.py")
    found: dict[str, list[str]] = {}
    for path in sorted(files):
        if path != Path(__file__).resolve():
            for key in citations(path.read_text(encoding="utf-8")):
                found.setdefault(key, []).append(path.relative_to(ROOT).as_posix())
    return found


def entries() -> dict[str, str]:
    """The fields of every entry of the bibliography, by key."""
    found = list(ENTRY.finditer(BIBLIOGRAPHY.read_text(encoding="utf-8")))
    keys = [match["key"] for match in found]
    assert len(keys) == len(set(keys)), f"keys appear twice: {sorted({key for key in keys if keys.count(key) > 1})}"
    return {match["key"]: match["fields"] for match in found}


def test_every_citation_is_in_the_bibliography() -> None:
    known = entries()
    missing = {key: files for key, files in cited().items() if key not in known}
    assert not missing, f"add to docs/references.bib: {missing}"


def test_every_entry_of_the_bibliography_is_cited() -> None:
    unused = sorted(set(entries()) - set(cited()))
    assert not unused, f"cited nowhere: {unused}"


def test_every_entry_is_complete_and_its_key_follows_from_author_and_year() -> None:
    text = BIBLIOGRAPHY.read_text(encoding="utf-8")
    assert len(entries()) == len(re.findall(r"^@", text, re.MULTILINE)), "an entry does not end with } on its own line"
    for key, fields in entries().items():
        values = dict(re.findall(r"^\s*(\w+)\s*=\s*\{(.*)\},?\s*$", fields, re.MULTILINE))
        assert set(REQUIRED) <= set(values), f"{key} lacks {sorted(set(REQUIRED) - set(values))}"
        surname = values["author"].split(" and ")[0].split(",")[0]
        assert re.fullmatch(key_of(surname, values["year"]) + "[a-z]?", key), f"{key}: {surname} {values['year']}"


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("[Mironov 2017, Prop. 7]", {"mironov2017"}),
        ("[Mironov 2017]", {"mironov2017"}),
        ("[Dong et al. 2022, Thm 4]", {"dong2022"}),
        ("[Balle and Wang 2018, Thm 8]", {"balle2018"}),
        ("[Bun & Steinke 2016]", {"bun2016"}),
        ("[Kairouz, Oh and Viswanath 2015, Thm 3.3]", {"kairouz2015"}),
        ("[Chua et al. 2024b]", {"chua2024b"}),
        ("[Erdős and Rényi 1959]", {"erdos1959"}),
        ("[Ben-Tal 2001; De la Peña et al. 2009, Ch. 1]", {"bental2001", "delapena2009"}),
        ("see [Zhu et al.\n    2022, Thm 11] there", {"zhu2022"}),
        ("# as in [Dong et al. 2022,\n# Thm 4]", {"dong2022"}),
        ("x[i], [0, 1], [a, b], [lower 2017], [Unreleased], [0.1.0], dict[str, int]", set()),
        ("[2017]", set()),
        ("[since Mironov wrote in 2017 that]", set()),
    ],
)
def test_citations_are_recognised(text: str, keys: set[str]) -> None:
    assert citations(text) == keys
