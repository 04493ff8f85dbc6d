"""`ssdlab compare`: finished runs, or targets measured in turns."""
