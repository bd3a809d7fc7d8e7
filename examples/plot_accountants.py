"""What four accountants make of up to two hundred releases, each 0.1-differentially private."""

import sys

from discreet import Cost
from discreet.plots import compare_accountants

target = sys.argv[1] if len(sys.argv) > 1 else "docs/assets/accountants.png"
compare_accountants(Cost.pure(0.1), delta=1e-6, title="What many releases cost, each of them 0.1-DP", path=target)
