"""The database of results: digests, fingerprints, schema, export."""
