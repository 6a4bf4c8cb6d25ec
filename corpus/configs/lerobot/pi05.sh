lerobot-train --dataset.repo_id=me/pick --policy.type=pi05 --policy.pretrained_path=lerobot/pi05_base \
  --policy.dtype=bfloat16 --policy.gradient_checkpointing=true --policy.compile_model=false --batch_size=32 --steps=3000 --num_workers=8
