"""When which terms are alive: the moments of a step, other passes, host memory, roles that share a card."""
