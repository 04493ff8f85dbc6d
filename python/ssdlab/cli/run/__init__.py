"""`ssdlab run`: experiments on one or more targets."""
