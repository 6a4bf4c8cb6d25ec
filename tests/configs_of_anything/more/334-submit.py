import submitit

executor = submitit.AutoExecutor(folder="logs")
executor.update_parameters(gpus_per_node=8, nodes=1, mem_gb=480, timeout_min=4320)
cmd = ["torchrun", "--nproc_per_node", "8", "pretrain.py",
       "--device_batch_size", "12", "--seq_len", "2048",
       "--grad_checkpointing", "--dtype", "bf16", "--lr", "3e-4"]
