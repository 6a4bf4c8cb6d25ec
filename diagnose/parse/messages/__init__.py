"""One module per grammar: what allocators, runtimes, kernels, schedulers, launchers and engines print."""
