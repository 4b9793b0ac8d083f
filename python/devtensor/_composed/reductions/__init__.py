"""What is told of many elements: variances, medians, groups."""
