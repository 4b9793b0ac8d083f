"""Elements in other places, and arrays of other shapes."""
