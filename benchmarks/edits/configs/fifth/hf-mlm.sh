torchrun --nproc_per_node 4 run_mlm.py \
  --model_name_or_path FacebookAI/roberta-large \
  --dataset_name wikitext --dataset_config_name wikitext-103-raw-v1 \
  --per_device_train_batch_size 64 --per_device_eval_batch_size 64 \
  --max_seq_length 512 --do_train --do_eval --fp16 \
  --output_dir /tmp/test-mlm --save_strategy epoch
