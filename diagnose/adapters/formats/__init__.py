"""Texts to leaves: YAML, JSON, TOML, settings as programs print them; each value with its exact place."""
