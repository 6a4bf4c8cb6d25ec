"""Rules to pages: the manual in docs/generated, and the same words for `oomdoctor rules show`.

One page for each word of the vocabulary, with every rule that speaks for it: a reader comes with the word that a report printed.
"""
