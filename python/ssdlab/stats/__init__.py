"""Statistics: numbers in, numbers out."""
