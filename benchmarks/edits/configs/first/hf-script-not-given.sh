deepspeed --num_gpus 4 finetune_mymodel.py \
  --model_name_or_path codellama/CodeLlama-7b-hf --data_path d.json --output_dir o \
  --num_train_epochs 3 --per_device_train_batch_size 8 --model_max_length 4096 \
  --evaluation_strategy no --save_strategy steps --deepspeed ds.json --bf16 True
