flake8 src --max-line-length 120 --jobs 8 --max-complexity 10
black --check --workers 4 src
