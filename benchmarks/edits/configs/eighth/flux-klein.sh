set -euo pipefail
cd "$(dirname "$0")"

DATASET_DIR="${1:?a folder is wanted}"
OUTPUT_DIR="${OUTPUT_DIR:-./output/lora}"
MODEL_NAME="${MODEL_NAME:-black-forest-labs/FLUX.2-klein-4B}"

source .venv/bin/activate

accelerate launch --config_file two.yaml \
  external/train_dreambooth_lora_flux2_klein_img2img.py \
  --pretrained_model_name_or_path="$MODEL_NAME" \
  --dataset_name="$DATASET_DIR" \
  --image_column="target_image" \
  --cond_image_column="condition_image" \
  --caption_column="instruction" \
  --output_dir="$OUTPUT_DIR" \
  --resolution=1024 \
  --train_batch_size=1 \
  --gradient_accumulation_steps=4 \
  --gradient_checkpointing \
  --cache_latents \
  --use_8bit_adam \
  --optimizer="adamw" \
  --guidance_scale=1 \
  --rank=16 \
  --lora_alpha=16 \
  --learning_rate=1e-4 \
  --lr_scheduler="constant_with_warmup" \
  --lr_warmup_steps=200 \
  --max_train_steps=2000 \
  --checkpointing_steps=250 \
  --seed=0 \
  --report_to="tensorboard" \
  "$@"
