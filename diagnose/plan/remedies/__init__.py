"""Remedy rules (rules/remedies) and the value types that a plan is made of."""
