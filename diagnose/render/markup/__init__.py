"""Pages, Markdown and chat messages."""
