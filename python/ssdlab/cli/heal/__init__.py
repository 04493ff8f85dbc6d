"""The verb `heal`: its command and its words."""
