"""What runs of a sweep come to: a row a run, what decides its numbers, which are the best."""
