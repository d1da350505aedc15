"""The auction on a machine that counts processors: starts by worth, within promises."""
