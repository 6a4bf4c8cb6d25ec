"""Edits to text: exactly the bytes concerned, in YAML, JSON, TOML, shell, Python and manifests; diffs."""
