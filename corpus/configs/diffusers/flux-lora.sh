export MODEL_NAME="black-forest-labs/FLUX.1-dev"
accelerate launch --num_processes 1 train_dreambooth_lora_flux.py \
  --pretrained_model_name_or_path=$MODEL_NAME \
  --instance_data_dir=pictures \
  --output_dir=out \
  --mixed_precision="bf16" \
  --instance_prompt="a photo of a red kite" \
  --resolution=512 \
  --train_batch_size=2 \
  --gradient_accumulation_steps=4 \
  --optimizer="prodigy" \
  --rank=16 \
  --max_train_steps=500
