"""The tenants of a card, one module each: weights, gradients, optimizer states, activations, logits, buffers."""
