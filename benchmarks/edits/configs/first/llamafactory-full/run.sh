FORCE_TORCHRUN=1 NNODES=1 llamafactory-cli train full.yaml
