"""Rules to pages: the manual in docs/generated, and the same words for `oomdoctor rules show`."""
