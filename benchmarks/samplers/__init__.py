"""The noise of several libraries, asked for in the same words."""
