"""Other ways to the drive of a site, and what is said of it."""
