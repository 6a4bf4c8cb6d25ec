python3 -m verl.trainer.main config=examples/config.yaml data.train_files=hiyouga/geometry3k@train data.max_response_length=4096 \
  worker.actor.model.model_path=Qwen/Qwen2.5-VL-7B-Instruct worker.rollout.n=5 worker.rollout.tensor_parallel_size=2 \
  worker.actor.micro_batch_size_per_device_for_update=4 worker.actor.fsdp.torch_dtype=bf16 worker.rollout.gpu_memory_utilization=0.7 \
  trainer.n_gpus_per_node=8
