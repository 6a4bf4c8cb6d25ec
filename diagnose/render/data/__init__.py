"""The report as data: declared once, as classes with typed fields, from which JSON, JSON Schema and the typed models are made; SARIF.

Nothing here needs pydantic, `typed_report` aside.
"""
