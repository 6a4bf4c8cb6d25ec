"""The command line: typer commands and the console script."""
