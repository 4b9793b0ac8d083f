"""What `python -m devtensor` does beside its report: a script is run, an error code is explained."""
