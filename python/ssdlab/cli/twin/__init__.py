"""`ssdlab twin`: the profiles of twins."""
