"""`python -m netclust` is `netclust`."""

from netclust.cli import main

main()
