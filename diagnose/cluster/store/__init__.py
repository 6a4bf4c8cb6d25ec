"""The database of results: digests of diagnoses, fingerprints of mistakes, tables, export."""
