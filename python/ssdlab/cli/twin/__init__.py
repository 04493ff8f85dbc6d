"""`ssdlab twin`: profiles, the data that twins are made of."""
