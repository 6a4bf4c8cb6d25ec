"""`python -m diagnose` is `oomdoctor`."""

from diagnose.surfaces.cli import main

main()
