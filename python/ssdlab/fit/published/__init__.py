"""Published measurements of drives, and the same values measured on their twins."""
