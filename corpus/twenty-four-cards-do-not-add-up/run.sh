NPROC_PER_NODE=8 NNODES=3 NODE_RANK=0 PORT=34545 ADDR=10.0.0.6 xtuner train llama2_70b_qlora_open_platypus_e1
