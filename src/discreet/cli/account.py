"""`discreet account`: the commands about costs, each with examples that run."""

from __future__ import annotations

import textwrap

import typer

from discreet.cli import calibration, comparison, last_iterate, levels, notions, picture

__all__ = ["account", "examples"]


def examples(*lines: str) -> str:
    """The last paragraph of a help text; its first character keeps Click from joining the lines.

    An example may go on in the next line after a backslash, as in a shell.
    """
    return "\b\nExamples:\n" + textwrap.indent("\n".join(lines), "  ")


account = typer.Typer(
    name="account",
    help="Read, solve for, compare and draw privacy costs; every number is a certified bound.",
    no_args_is_help=True,
    rich_markup_mode=None,
    epilog=examples("discreet account compare --gaussian 1.1 --rate 256/60000 --steps 14000 --delta 1e-5"),
)
account.command(
    epilog=examples(
        "discreet account epsilon --gaussian 1.1 --rate 256/60000 --steps 14000 --delta 1e-5",
        'discreet account epsilon --cost "100 * laplace(5)" --cost "gaussian(2)" --delta 1e-6 --explain',
        "discreet account epsilon --gaussian 1 --scheme balls_in_bins --rate 1/100 --epochs 5 --delta 1e-6",
        "discreet account epsilon --cost \"pure(1, adjacency='replace-one').shuffled(1000)\" --delta 1e-6",
        "discreet account epsilon --gaussian 2 --delta 1e-30 --json",
    )
)(levels.epsilon)
account.command(
    epilog=examples(
        "discreet account delta --gaussian 1.1 --rate 256/60000 --steps 14000 --epsilon 2",
        'discreet account delta --cost "100 * randomized_response(0.1)" --epsilon 2 --json',
    )
)(levels.delta)
account.command(
    epilog=examples(
        "discreet account summary --gaussian 2 --steps 4 --delta 1e-6",
        'discreet account summary --cost "100 * randomized_response(0.1) + gaussian(5)" --delta 1e-6 --json',
    )
)(notions.summary)
account.command(
    epilog=examples(
        "discreet account calibrate --mechanism gaussian --rate 0.01 --steps 10000 --epsilon 1 --delta 1e-6",
        'discreet account calibrate --cost "100 * laplace(x) + gaussian(9)" --epsilon 1 --delta 1e-6',
        'discreet account calibrate --cost "x * gaussian(20)" --epsilon 1 --delta 1e-6 --json',
    )
)(calibration.calibrate)
account.command(
    epilog=examples(
        "discreet account compare --gaussian 1.1 --rate 256/60000 --steps 14000 --delta 1e-5",
        'discreet account compare --cost "laplace(1)" --cost "gaussian(2)" --delta 1e-6',
        "discreet account compare --laplace 5 --scheme cyclic_poisson --rate 0.1 --epochs 9 --delta 1e-6",
        'discreet account compare --cost "100 * pure(0.1)" --method auto --method advanced --delta 1e-6 --json',
    ),
    short_help="Several costs, or several accountants, in one table.",
)(comparison.compare)
account.command(
    epilog=examples(
        "discreet account plot --gaussian 1.1 --rate 256/60000 --steps 14000 --output tradeoff.png",
        'discreet account plot --cost "laplace(1)" --cost "gaussian(2)" --kind profile --output profiles.png',
    ),
    short_help="A picture of one or several costs.",
)(picture.plot)
account.command(
    name="last-iterate",
    epilog=examples(
        "discreet account last-iterate pnsgd --records 900 --position 1 --step-size 1 --noise 2 --delta 1e-6",
        "discreet account last-iterate stop-pnsgd --records 900 --step-size 1 --noise 9 --delta 1e-6 --json",
        "discreet account last-iterate pnsgd --records 900 --clipped --linear-model \\\n"
        "    --step-size 1 --noise 9 --delta 1e-6",
        "discreet account last-iterate hockey-stick-contraction --records 90 --position 1 \\\n"
        "    --diameter 1 --step-size 1 --noise 2 --delta 1e-6 --explain",
    ),
    short_help="Algorithms whose intermediate states stay hidden.",
)(last_iterate.last_iterate)
