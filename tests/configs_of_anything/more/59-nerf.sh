ns-train nerfacto --data data/scene \
  --pipeline.datamanager.train-num-rays-per-batch 6144 \
  --pipeline.datamanager.eval-num-rays-per-batch 2048 \
  --mixed-precision True \
  --max-num-iterations 30000 \
  --machine.num-devices 2
