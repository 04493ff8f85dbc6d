"""Results as they are given: tables and rows, checked as they are read, held against each other."""
