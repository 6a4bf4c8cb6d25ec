"""The report of many jobs: groups, counts, text, pages, chat messages, webhooks, --fail-on."""
