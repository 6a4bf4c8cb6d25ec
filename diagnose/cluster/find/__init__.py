"""Finds jobs: in folders, archives, object stores, lists and exports of schedulers."""
