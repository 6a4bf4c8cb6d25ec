python crawl.py --start https://example.org --depth 3 --workers 16 --batch-size 50 --timeout 20 --output pages.jsonl
