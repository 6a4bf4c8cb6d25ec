lerobot-train --policy.path=lerobot/smolvla_base --dataset.repo_id=me/pick --batch_size=64 --steps=20000 --output_dir=out --policy.device=cuda
