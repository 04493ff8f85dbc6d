"""`ssdlab witness`: one file a sub-command."""
