"""Products, sums of products, and distances."""
