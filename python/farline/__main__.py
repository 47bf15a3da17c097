"""`python -m farline` is the `farline` command."""

from farline.cli import main

main()
