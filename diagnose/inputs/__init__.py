"""A caller's arguments to scanned logs, configs and facts: folders, archives, pasted pages, wandb files."""
