"""The report as data: JSON and SARIF."""
