#!/bin/sh
# Everything that can be said without running the product.
set -e
ruff check .
ruff format --check .
mypy marketplace agents
lint-imports --no-logo 2>/dev/null || lint-imports
JOURNEYMAN_VAR="$(mktemp -d)" python manage.py makemigrations --check --dry-run
