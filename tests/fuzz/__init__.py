"""Random calls of the whole API with hostile arguments; `python tests/fuzz --help` says how to run them."""
