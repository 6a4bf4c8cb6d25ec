accelerate launch --num_processes 2 --mixed_precision fp16 tutorial_train.py \
  --pretrained_model_name_or_path="runwayml/stable-diffusion-v1-5/" \
  --image_encoder_path="clip" \
  --data_json_file="d.json" \
  --resolution=768 \
  --train_batch_size=5 \
  --dataloader_num_workers=4 \
  --learning_rate=1e-04 \
  --save_steps=10000
