python3 -m verl.trainer.main \
  config=examples/config.yaml \
  worker.actor.model.model_path=Qwen/Qwen2.5-VL-7B-Instruct \
  worker.actor.micro_batch_size_per_device_for_update=2 \
  worker.rollout.gpu_memory_utilization=0.5 worker.rollout.n=8 data.max_response_length=4096 \
  trainer.n_gpus_per_node=8
