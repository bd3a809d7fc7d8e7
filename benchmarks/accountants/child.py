"""One contestant, one question, one fresh process: prints a line of JSON.

    python -m accountants.child "dp-accounting PLD" "ordinary 1" --repeats 5

A first call with another setting warms the library up and is not counted. The answer comes from the first counted call;
the further ones change the noise by a few parts in ten million, so that nothing can be looked up from the call before.
"""

from __future__ import annotations

import argparse
import json
import resource
import time

from accountants.contestants import CONTESTANTS, WARM_UP, NotOffered
from accountants.questions import questions

SLOW_S = 2.0
"""A call slower than this is not repeated."""

MEMORY_LIMIT_BYTES = 6 * 1024**3
"""Address space of one answer: who needs more shows a MemoryError instead of stopping the machine."""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("contestant", choices=list(CONTESTANTS))
    parser.add_argument("question")
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT_BYTES, MEMORY_LIMIT_BYTES))
    question = next(q for q in questions() if q.name == arguments.question)

    start = time.process_time()
    ask = CONTESTANTS[arguments.contestant][1]()
    result: dict[str, object] = {"import_cpu_s": time.process_time() - start, "import_peak_mb": _peak_mb()}
    try:
        ask(WARM_UP)
        times: list[float] = []
        for k in range(arguments.repeats):
            asked = question if k == 0 else question.scaled(1 + 1e-7 * k)
            start = time.process_time()
            answer = ask(asked)
            times.append(time.process_time() - start)
            if k == 0:
                result["lower"], result["value"] = answer
            if times[-1] > SLOW_S:
                break
        result["cpu_s"] = times
    except NotOffered:
        result["failure"] = "not offered"
    except Exception as problem:  # whatever a library raises is its answer
        result["failure"] = type(problem).__name__
    result["peak_mb"] = _peak_mb()
    print(json.dumps(result))


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
