"""Helpers that turn records into findings; pure functions without I/O."""
