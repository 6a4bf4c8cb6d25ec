"""The release of this program: its only home."""

__version__ = "0.1.0"
