"""`python -m discreet.cli` is the `discreet` command."""

from discreet.cli import main

main()
