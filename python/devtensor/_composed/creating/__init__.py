"""New arrays: numbers in a row, windows of signals, random numbers."""
