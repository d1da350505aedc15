"""Integrated scheduling: running applications that give processors to others and get them back (Weissman)."""
