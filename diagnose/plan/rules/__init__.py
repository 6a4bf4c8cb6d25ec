"""Remedy rules (rules/remedies) and the values that a plan is made of."""
