"""What lies on a card, a module per tenant: weights, gradients, optimizer states, activations, logits, buffers.

A function returns the terms of one tensor, each a formula in bytes on one card; none where the job has no such tensor or a letter of the
formula is unknown. Letters (all in docs/memory.md): b, B rows of the micro batch, of the forward pass; s tokens per row; T tokens of the
forward pass; L layers; h hidden size; f width of the MLP; a heads; q, k width of all queries, of all keys; V vocabulary; P, Pt parameters,
trained parameters; N ranks that share states; w, g bytes per weight, per gradient. Figures in docstrings are those of 16-bit computation.
"""
