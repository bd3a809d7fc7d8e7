"""`discreet demo`: a tour in under a minute, each stop with what it shows in one sentence."""

from __future__ import annotations

import textwrap
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli import curated
from discreet.cli.levels import in_words
from discreet.cli.number import above, below
from discreet.cli.reading import described, read
from discreet.cli.show import console, table

if TYPE_CHECKING:
    from discreet.accounting import Cost
    from discreet.divergence.tradeoff import TradeOff

__all__ = ["demo"]

DELTA = 1e-5
_WIDTH, _HEIGHT = 52, 14
_TEXT = 96


def demo(
    *,
    data: Annotated[
        str | None,
        typer.Option("--data", metavar="FOLDER", help="Only copy the flights of the tour, with their policy, here."),
    ] = None,
) -> None:
    """A tour of what discreet does, in well under a minute."""
    if data is not None:
        from discreet.query.example import flights

        typer.echo(f"{flights(data)}: 80789 flights of 3575 planes, and what is public about them.")
        return
    start = time.perf_counter()
    screen = console()
    screen.print("discreet: what a release of data gives away about one person, as numbers that are proved.")
    try:
        for number, (title, stop) in enumerate(STOPS, start=1):
            screen.print(f"\n{number}. {title}", style="bold")
            for sentence in stop():
                screen.print("\n".join(textwrap.wrap(sentence, _TEXT, initial_indent="   ", subsequent_indent="   ")))
    finally:
        curated.close()
    screen.print(f"\nThat took {time.perf_counter() - start:.1f} s. Go on with: discreet query --help")


def training() -> Cost:
    """The run that most stops look at: DP-SGD on 60 000 people in batches of about 256."""
    from discreet.accounting import Cost

    return 14_000 * Cost.gaussian(noise_multiplier=1.1).sampled(rate=256 / 60_000)


def _certified() -> Iterator[str]:
    result = read(training(), delta=DELTA)
    words = in_words(training(), result, delta=DELTA)
    _rows(
        ("cost", described(training())),
        ("epsilon is at least", below(result.lower, 12)),
        ("epsilon is at most", f"{above(result.upper, 12)}   at delta = {DELTA:g}, after {result.milliseconds:.0f} ms"),
        ("found by", words.accountant),
        ("meaning", words.meaning),
    )
    yield (
        "A model is trained in 14000 noisy steps. Whoever sees all of them learns no more about one person than "
        "epsilon allows, and both ends are certified: truncation, discretisation and rounding are included."
    )


def _accountants() -> Iterator[str]:
    from discreet.accounting import Cost, classic

    answers = 80 * Cost.pure(0.125)
    step = Cost.gaussian(noise_multiplier=1.1).sampled(rate=256 / 60_000)
    half = DELTA / 28_000  # as in textbooks: half of delta for the steps, half for their composition
    advanced = classic.epsilon([step.epsilon(half)], [half], counts=[14_000], delta=DELTA)
    rows = [
        (
            "basic: epsilons and deltas add up",
            14_000 * step.epsilon(DELTA / 14_000),
            answers.epsilon(DELTA, method="classic"),
        ),
        ("advanced composition", advanced, answers.epsilon(DELTA, method="advanced")),
        ("Rényi divergence", training().epsilon(DELTA, method="renyi"), answers.epsilon(DELTA, method="renyi")),
        ("discreet", training().epsilon(DELTA), answers.epsilon(DELTA)),
    ]
    shown = [[name, above(run, 6), above(asked, 6)] for name, run, asked in rows]
    guess = [f"about {cost.estimate(delta=DELTA):.5g}" for cost in (training(), answers)]
    _table(["epsilon at most", "the training run", "80 answers, each 0.125-DP"], [*shown, ["(central limit)", *guess]])
    yield (
        "Every named bound holds, and the tighter it is, the less noise the same promise needs. The last line is the "
        "estimate that many tools print: no bound, and too small for this training run."
    )


def _mixture() -> Iterator[str]:
    from discreet.accounting import Cost

    parts = [
        ("the training run", training()),
        ("a histogram with Laplace noise", Cost.laplace(noise_multiplier=2.0)),
        ("20 counts with integer Laplace noise", 20 * Cost.discrete_laplace(noise_multiplier=10.0)),
        ("100 randomized responses", 100 * Cost.randomized_response(0.1)),
    ]
    total = parts[0][1]
    for _, part in parts[1:]:
        total = total + part
    separate = sum(part.epsilon(DELTA) for _, part in parts)
    rows = [[name, above(part.epsilon(DELTA), 6)] for name, part in parts]
    result = read(total, delta=DELTA)
    rows += [["all of it, composed", above(result.upper, 6)], ["(the sum of the lines above)", above(separate, 6)]]
    _table(["release", f"epsilon at delta = {DELTA:g}"], rows)
    yield (
        "Releases of different kinds share one account, and as the worst of each rarely comes together, all of them "
        f"cost less than the sum. The bracket of the total has a relative width of {above(result.reading.width, 2)}."
    )


def _small_delta() -> Iterator[str]:
    rows = []
    for delta in (1e-5, 1e-10, 1e-20, 1e-30):
        result = read(training(), delta=delta)
        rows.append([f"{delta:g}", below(result.lower), above(result.upper), f"{result.milliseconds:.0f} ms"])
    _table(["delta", "epsilon at least", "epsilon at most", "time"], rows)
    yield "A probability of failure of 1e-30 is as easy as 1e-5: tails are computed relative to their own size."


def _calibrated() -> Iterator[str]:
    from discreet.accounting import Cost
    from discreet.accounting.calibration import calibrate

    def run(noise: float) -> Cost:
        return 10_000 * Cost.gaussian(noise).sampled(rate=0.01)

    start = time.perf_counter()
    noise = calibrate(run, epsilon=1.0, delta=1e-6)
    spent = 1000 * (time.perf_counter() - start)
    _rows(
        ("wanted", "epsilon = 1 at delta = 1e-06 for 10000 steps at rate 0.01"),
        ("noise multiplier", f"{above(noise)}   ({spent:.0f} ms)"),
        ("epsilon reached", above(run(noise).epsilon(1e-6))),
    )
    yield "The promise comes first: the smallest noise that keeps it is found, and checked by the same certificate."


def _guarded() -> Iterator[str]:
    from discreet.accounting import Cost
    from discreet.accounting.budget import Budget
    from discreet.accounting.filters import Filter
    from discreet.errors import BudgetExceeded

    guard = Filter(Budget(epsilon=1.0, delta=1e-6))
    rows = []
    for noise in (10.0, 12.0, 20.0, 5.0, 40.0):
        release = Cost.gaussian(noise_multiplier=noise)
        try:
            guard.charge(release)
        except BudgetExceeded as error:
            verdict = f"refused: needs {error.unit} {above(error.requested, 3)}, left {below(error.remaining, 3)}"
        else:
            verdict = "charged"
        rows.append([described(release), verdict, guard.budget.left(guard.remaining, digits=4)])
    _table(["asked for", "answer of the filter", "left (epsilon of one pure release)"], rows)
    yield (
        "An analyst who looks at each answer before asking the next is covered by a filter, which refuses before "
        "anything is computed and charges nothing for it; a smaller question may still fit."
    )


def _released() -> Iterator[str]:
    from discreet.mechanisms import DiscreteLaplace

    visits = {"Oslo": 1203, "Lima": 871, "Pune": 96, "Nuuk": 4}
    mechanism = DiscreteLaplace(epsilon=0.5, sensitivity=1)
    released = mechanism.release(list(visits.values()))
    half_width = mechanism.error(confidence=0.95)
    rows = [
        [city, str(count), f"{noisy} ± {half_width:g}"]
        for (city, count), noisy in zip(visits.items(), released, strict=True)
    ]
    _table(["visitors of", "secret", "released, with its 95 % error"], rows)
    yield (
        "Each person visits one city, so one person changes one count by one. The noise is a whole number drawn "
        "exactly from a cryptographic generator: no float touches it, so no low bit gives the secret away."
    )


def _audited() -> Iterator[str]:
    from discreet.audit import check
    from discreet.mechanisms import DiscreteLaplace

    honest, careless = (DiscreteLaplace(epsilon=epsilon, sensitivity=1) for epsilon in (0.5, 1.0))
    rows = []
    for name, mechanism in (("the mechanism above", honest), ("the same with half the noise", careless)):
        report = check(
            release=mechanism.release,
            releases=lambda value, n, drawn=mechanism: drawn.release([value] * n),
            cost=honest.cost,
            inputs=(0, 1),
            bad_values=[None],
            draws=50_000,
        )
        verdict = "passed" if report.passed else "caught"
        rows.append([name, f"{report.epsilon_claimed:g}", below(report.epsilon_measured, 3), verdict])
    _table(["audited", "epsilon claimed", "epsilon is at least", "verdict"], rows)
    yield (
        "An audit runs a mechanism on two inputs that differ by one person and tries to refute its claim. It accuses "
        "an honest one with probability below 1e-9; try it on your own with discreet.audit.check."
    )


def _curve() -> Iterator[str]:
    for line in drawn(training().tradeoff()):
        print("   " + line)
    yield (
        "The whole guarantee as a curve: whoever tries to tell whether you were in the data and is wrong about absent "
        "people at the rate below, misses present people at least at the rate on the left. Dots: guessing blindly."
    )


STOPS: Sequence[tuple[str, Callable[[], Iterator[str]]]] = (
    *curated.STOPS,
    ("A certified epsilon for private training", _certified),
    ("What other ways of counting say", _accountants),
    ("Different mechanisms in one account", _mixture),
    ("Failure probabilities far below the usual", _small_delta),
    ("The noise for a promise", _calibrated),
    ("A budget that refuses", _guarded),
    ("Counts with exact noise", _released),
    ("An audit that tries to refute it", _audited),
    ("Everything an attacker can do", _curve),
)


def drawn(curve: TradeOff, *, width: int = _WIDTH, height: int = _HEIGHT) -> list[str]:
    """A trade-off curve in characters: missed detections over false alarms, `*` for the curve, `.` for 1 - alpha."""
    import numpy as np

    columns = np.arange(width) / (width - 1)
    cells = [[" "] * width for _ in range(height)]
    for values, mark in ((1 - columns, "."), (curve(columns), "*")):
        heights = np.clip(np.asarray(values), 0.0, 1.0)
        for column, value in enumerate(heights):
            cells[round((1 - float(value)) * (height - 1))][column] = mark
    lines = [
        f"{'1 ' if row == 0 else '0 ' if row == height - 1 else '  '}|{''.join(line)}" for row, line in enumerate(cells)
    ]
    lines.insert(0, "missed detections")
    lines += ["  +" + "-" * width, "   0" + "false alarms".center(width - 2) + "1"]
    return [line.rstrip() for line in lines]


def _rows(*rows: tuple[str, str]) -> None:
    """Names and values; long values go on below their beginning."""
    edge = max(len(name) for name, _ in rows)
    lines = []
    for name, value in rows:
        first, *rest = textwrap.wrap(value, _TEXT - edge, break_on_hyphens=False)
        lines += [(name, first), *(("", line) for line in rest)]
    table(None, [("  ", *line) for line in lines])


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    table(["  ", *header], [("  ", *row) for row in rows])
