"""``python -m aucsched``."""

from .cli import main

main()
