"""Twins beside the tables in which their drives were published: figure by figure, each computed."""
