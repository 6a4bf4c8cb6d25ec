dora -P audiocraft run \
  solver=musicgen/musicgen_base_32khz \
  model/lm/model_scale=medium \
  conditioner=text2music \
  dset=audio/example \
  dataset.batch_size=7 \
  dataset.num_workers=4 \
  autocast=true autocast_dtype=bfloat16 \
  optim.optimizer=adamw optim.lr=1e-4 \
  transformer_lm.checkpointing=torch \
  dataset.segment_duration=30
