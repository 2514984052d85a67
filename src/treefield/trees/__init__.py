"""Where search is exact: which sites, and in which order."""
