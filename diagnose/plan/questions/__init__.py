"""Which unknown fact would change the answer most."""
