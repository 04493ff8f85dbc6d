"""`ssdlab run`: an experiment on one target or several; one file an experiment."""
