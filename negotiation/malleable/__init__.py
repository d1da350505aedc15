"""Integrated scheduling: running applications give processors and get them back (Weissman)."""
