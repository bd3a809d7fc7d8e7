"""High-precision references in ball arithmetic, written apart from the package and sharing no code with it."""
