"""Reports as web pages: one self-contained file each, which asks no network for anything."""
