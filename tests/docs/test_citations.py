"""Every citation such as [Mironov 2017, Prop. 7] has an entry in docs/references.bib, and every entry is cited."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bibliography import BIBLIOGRAPHY, Entry, citations, entries, key_of, linked

ROOT = Path(__file__).resolve().parents[2]
NOT_CITING = {Path(__file__).resolve(), ROOT / "docs" / "tooling" / "bibliography.py", ROOT / "CONTRIBUTING.md"}


def cited() -> dict[str, list[str]]:
    """Every key cited in the repository, with the files that cite it; caches and environments that lie about apart."""
    files = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    for folder in ("src", "tests", "benchmarks", "examples"):
        files += (ROOT / folder).rglob("*.py")
    found: dict[str, list[str]] = {}
    for path in sorted(set(files) - NOT_CITING):
        if any(part.startswith(".") for part in path.relative_to(ROOT).parts):
            continue
        for key in citations(path.read_text(encoding="utf-8")):
            found.setdefault(key, []).append(path.relative_to(ROOT).as_posix())
    return found


@pytest.fixture(scope="module")
def works() -> dict[str, Entry]:
    """The entries of the bibliography, by key."""
    found = entries(BIBLIOGRAPHY.read_text(encoding="utf-8"))
    keys = [entry.key for entry in found]
    assert len(keys) == len(set(keys)), f"keys appear twice: {sorted({key for key in keys if keys.count(key) > 1})}"
    return dict(zip(keys, found, strict=True))


def test_every_citation_is_in_the_bibliography(works: dict[str, Entry]) -> None:
    missing = {key: files for key, files in cited().items() if key not in works}
    assert not missing, f"add to docs/references.bib: {missing}"


def test_every_entry_of_the_bibliography_is_cited(works: dict[str, Entry]) -> None:
    unused = sorted(set(works) - set(cited()))
    assert not unused, f"cited nowhere: {unused}"


def test_every_entry_is_read_and_written_in_plain_unicode(works: dict[str, Entry]) -> None:
    text = BIBLIOGRAPHY.read_text(encoding="utf-8")
    assert len(works) == len(re.findall(r"^@", text, re.MULTILINE)), "an entry does not end with } on a line of its own"
    assert "\\" not in text, "write é, not an accent in TeX"


def test_every_entry_is_complete_and_its_key_follows_from_author_and_year(works: dict[str, Entry]) -> None:
    for key, entry in works.items():
        missing = {"author", "title", "year"} - set(entry.fields)
        assert not missing, f"{key} lacks {sorted(missing)}"
        expected = key_of(entry.first_author, entry.fields["year"])
        assert re.fullmatch(expected + "[a-z]?", key), f"the key {key} should be {expected}"


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


def test_known_citations_become_links_and_nothing_else_does() -> None:
    text = "<p>[Bun &amp; Steinke 2016; Dong et al.\n2022, Thm 4], [Nobody 2001], x[0, 1]</p>"
    assert linked(text, {"bun2016", "dong2022"}, "../references/") == (
        '<p>[<a href="../references/#bun2016">Bun &amp; Steinke 2016</a>; '
        '<a href="../references/#dong2022">Dong et al.\n2022, Thm 4</a>], [Nobody 2001], x[0, 1]</p>'
    )
