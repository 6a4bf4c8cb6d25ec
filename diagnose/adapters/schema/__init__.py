"""The tables of rules/frameworks: which key of a framework turns which knob, and whose keys a config holds."""
