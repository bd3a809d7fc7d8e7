"""SciPy's functions, loaded when one of them is called and not before."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import scipy.special

from discreet.divergence import special


@pytest.mark.parametrize("name", special.__all__)
def test_every_function_is_that_of_scipy(name: str) -> None:
    function, original = getattr(special, name), getattr(scipy.special, name)
    arguments = [np.array([0.25, 0.5])] * {"betainc": 3, "betaincinv": 3, "chdtri": 2, "gammaincinv": 2, "ive": 2}.get(
        name, 1
    )
    if name == "ndtri_exp":
        arguments = [np.array([-0.25, -0.5])]
    assert np.array_equal(function(*arguments), original(*arguments))


def test_scipy_is_loaded_with_the_first_call() -> None:
    code = (
        "import sys; from discreet.divergence.special import logsumexp\n"
        "loaded = lambda: 'scipy.special' in sys.modules\n"
        "print(loaded(), logsumexp([[0.0], [0.0]], axis=1).tolist(), loaded())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False [0.0, 0.0] True\n"
