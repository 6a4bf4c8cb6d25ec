"""Parts that all formats share: words, sizes, the bar of the card, advice, cited lines, masking."""
