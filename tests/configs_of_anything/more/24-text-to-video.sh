ckpt='checkpoints/base/model.ckpt'
config='configs/inference/t2v.yaml'
python3 scripts/inference.py \
  --ckpt_path $ckpt \
  --config $config \
  --prompt_file prompts.txt \
  --savedir results/ \
  --n_samples 2 \
  --bs 3 --height 320 --width 576 \
  --frames 24 \
  --fps 28 \
  --unconditional_guidance_scale 12.0 \
  --ddim_steps 50 \
  --seed 123
