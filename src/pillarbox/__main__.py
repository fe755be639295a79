"""`python -m pillarbox`."""

from pillarbox.cli import main

main()
