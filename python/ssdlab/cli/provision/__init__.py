"""The command `provision`: its options and its output."""
