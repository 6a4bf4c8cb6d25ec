"""Config texts to leaves: YAML, JSON, TOML, Hydra overrides, settings printed into a log; each value keeps its offsets."""
