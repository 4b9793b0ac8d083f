"""What dtypes are: the numbers of each, which comes of several, and which ops take inside an autocast block."""
