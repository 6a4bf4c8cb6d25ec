python3 -m verl.trainer.main config=config.yaml worker.actor.model.model_path=Qwen/Qwen2.5-VL-7B-Instruct
