python src/lerobot/scripts/lerobot_train.py --policy.path=lerobot/smolvla_base --dataset.repo_id=me/pick --batch_size=64 --steps=20000
