"""The generated manual: pages from rules, in docs/generated and for `oomdoctor rules show`."""
