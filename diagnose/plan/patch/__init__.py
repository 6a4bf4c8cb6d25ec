"""Apply edits to the user's files: change only the bytes concerned, in YAML, JSON, TOML, shell, Python and Kubernetes manifests."""
