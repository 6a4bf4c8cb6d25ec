"""What every format shows alike: words, sizes, the bar of the card, advice, cited lines, masking."""
