"""`python -m diagnose` is `oomdoctor`."""

from diagnose.surfaces.cli.entry import run

if __name__ == "__main__":
    run()
