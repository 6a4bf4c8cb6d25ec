"""A job before and after some of its settings were turned: for the terminal, the playground, the server and agents."""
