"""The command line: typer's commands and the console script."""
