"""`ssdlab witness`: one file per sub-command."""
