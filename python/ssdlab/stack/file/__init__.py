"""One file on a mounted file system: everything that decides whether it may be rewritten."""
