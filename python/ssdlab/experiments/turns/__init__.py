"""The experiment `turns`: repeated short jobs, for comparisons of interleaved targets."""
