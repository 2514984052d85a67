"""Message rules, one for each kind of pairwise cost."""
