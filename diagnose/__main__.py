"""`python -m diagnose` is `oomdoctor`."""

from diagnose.surfaces.cli.command_line import main

main()
