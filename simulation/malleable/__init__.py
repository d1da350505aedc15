"""Applications that grow and shrink while they run, on a machine of counts (Weissman, chapter 4)."""
