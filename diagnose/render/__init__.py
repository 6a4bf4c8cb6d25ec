"""A diagnosis to text: one pure function per format; nothing here computes."""
