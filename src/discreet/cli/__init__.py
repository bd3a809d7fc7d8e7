"""The `discreet` command: a door to the library for people and scripts."""

from discreet.cli.app import app, main

__all__ = ["app", "main"]
