"""From SQL text to a `Question`: parsed by sqlglot, planned by rules of our own, refused where it is not understood."""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet.query.plan import Output, Question
from discreet.query.sql.mistakes import NEVER, check_spelling, question_for, syntax
from discreet.query.sql.text import Source, quoted

if TYPE_CHECKING:
    from typing import Any

    from discreet.query.catalog import Catalog
    from discreet.query.sql.relation import Relation

__all__ = ["parse", "read_rows", "relation_of", "render"]

LONGEST_TEXT = 20_000


def parse(text: str, catalog: Catalog) -> Question:
    """The plan of a question; raises `QueryRefused` if it is not understood or would show rows of people.

    Nothing but the text and the catalog is looked at: no data is touched and no budget is spent.
    """
    return _planned(text, catalog)[0]


def render(text: str, catalog: Catalog) -> str:
    """The plan as a tree of operators, each with what one unit can change through it."""
    question, steps = _planned(text, catalog)
    lines: list[str] = []
    for i, step in enumerate(steps):
        first, *rest = step.lines()
        lines += [f"noisy_{i}: {first}", *(f"  {line}" for line in rest)]
        lines += [f"  note: {note}" for note in question.blocks[i].notes]
    lines.append(f"after: {question.after}")
    return "\n".join(lines)


def read_rows(text: str, catalog: Catalog) -> tuple[Source, Any]:
    """The text and the syntax tree of a question whose rows nobody is shown."""
    source = _source(text)
    tree, options = _tree(source, catalog)
    if options:
        raise source.refusal("OPTIONS has no meaning for the rows of a model", advice="leave it out")
    return source, tree


def relation_of(source: Source, tree: Any, catalog: Catalog) -> Relation:
    """The relation that a tree names; refuses what `parse` does, but for rows of people."""
    return _related(source, tree.copy(), catalog)[0]


def _source(text: str) -> Source:
    source = Source(text)
    if len(text) > LONGEST_TEXT:
        raise source.refusal("this question is too long", advice=f"use at most {LONGEST_TEXT} characters")
    if any("\ue000" <= character <= "\uf8ff" or character == "\0" for character in text):
        raise source.refusal("the question contains characters without a meaning", advice="remove them")
    return source


def _related(source: Source, tree: Any, catalog: Catalog) -> tuple[Relation, Any]:
    """The relation of a tree, and the planner that made it."""
    from discreet.query.sql.planner import Planner

    planner = Planner(source, catalog)
    try:
        return planner.query(tree, {}), planner
    except RecursionError:
        raise source.refusal("this question is nested too deeply", advice="split it into steps") from None


def _planned(text: str, catalog: Catalog) -> tuple[Question, list[Any]]:
    source = _source(text)
    tree, options = _tree(source, catalog)

    from discreet.query.sql.relation import numbered, with_public

    relation, planner = _related(source, tree, catalog)
    if relation.private and relation.step.what == "aggregate for each unit":
        raise source.refusal(
            "the answer would have one row for each person",
            advice="aggregate over people next: SELECT AVG(n) FROM (... GROUP BY the unit column)",
            at=tree.args.get("group") or tree,
        )
    if relation.private:
        raise source.refusal(
            "the answer would show rows of people",
            advice="ask for aggregates, such as SELECT COUNT(*) or SELECT city, AVG(spend) ... GROUP BY city",
            at=tree,
        )
    names = _names(relation)
    select = relation.select((one.value.sql, quoted(name)) for one, name in zip(relation.fields, names, strict=True))
    public: dict[str, None] = {}

    def named(name: str) -> str:
        public[name] = None
        return quoted(name)

    after = numbered(with_public(select, named))
    outputs = tuple(
        Output(name, *(one.value.origin or (None, None))) for one, name in zip(relation.fields, names, strict=True)
    )
    blocks = tuple(planner.blocks)
    question = Question(text, _canonical(blocks), blocks, after, outputs, tuple(public), options)
    return question, planner.steps


def _tree(source: Source, catalog: Catalog) -> tuple[Any, tuple[tuple[str, Any], ...]]:
    """The syntax tree of the one statement, and its options."""
    from sqlglot import exp
    from sqlglot.dialects.duckdb import DuckDB
    from sqlglot.errors import SqlglotError

    from discreet.query.sql.options import split_options
    from discreet.query.sql.spelled import spelled_out

    dialect = DuckDB()
    try:
        tokens = dialect.tokenize(source.text)
    except SqlglotError:
        raise source.refusal("the text cannot be read as SQL", advice="check quotes and special characters") from None
    end, options = split_options(source, tokens)
    tokens = [token for token in tokens if token.start < end]
    if tokens and tokens[0].text.upper() not in ("SELECT", "WITH", "FROM", "("):
        raise source.refusal_at(
            (tokens[0].start, tokens[0].end), "only questions are answered", advice=question_for(tokens[0].text.upper())
        )
    check_spelling(source, tokens)
    try:
        trees = dialect.parser().parse(tokens, source.text[:end])
    except SqlglotError as error:
        raise syntax(source, error, tokens, catalog) from None
    except RecursionError:
        raise source.refusal("this question is nested too deeply", advice="split it into steps") from None
    trees = [tree for tree in trees if tree is not None and not isinstance(tree, exp.Semicolon)]  # a comment at the end
    if len(trees) != 1:
        raise source.refusal(
            "a question is one SELECT" if trees else "the question is empty", advice="write one SELECT ... FROM ..."
        )
    if not isinstance(trees[0], exp.Query):
        raise source.refusal("only questions are answered", advice=NEVER, at=trees[0])
    return spelled_out(source, trees[0]), options


def _names(relation: Relation) -> list[str]:
    """The names of the columns of the answer, made unique."""
    names: list[str] = []
    taken: set[str] = set()
    for one in relation.fields:
        name, count = one.name, 0
        while name.lower() in taken:
            count += 1
            name = f"{one.name}_{count}"
        taken.add(name.lower())
        names.append(name)
    return names


def _canonical(blocks: tuple[Any, ...]) -> str:
    """The same text for questions that measure the same: spelling, layout, comments and aliases are gone.

    What stands above the aggregates is no part of it: it works on noisy numbers that may have been paid for already.
    """
    parts = []
    for block in blocks:
        keys = [(key.column, key.sql_type, key.values, key.of_unit) for key in block.keys]
        measures = [
            (one.function, one.column, one.argument, one.bounds, one.probability, one.kind, one.values)
            for one in block.aggregates
        ]
        parts.append(f"{block.rows} KEYS {keys!r} MEASURES {measures!r} ROWS {block.rows_per_unit!r}")
    return "\n".join(parts)
