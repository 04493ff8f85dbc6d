"""`ssdlab sweep`: many runs from one spec."""
