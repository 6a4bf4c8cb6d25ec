"""The report as data, declared as classes with typed fields, from which JSON, JSON Schema and pydantic models are made; and SARIF.

Only `pydantic_report` needs pydantic.
"""
