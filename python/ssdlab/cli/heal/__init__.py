"""The command `heal`: its options, its runs and its output."""
