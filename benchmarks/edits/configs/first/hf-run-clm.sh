torchrun --nproc_per_node 2 run_clm.py --model_name_or_path gpt2-xl --dataset_name wikitext --block_size 1024 \
  --per_device_train_batch_size 16 --per_device_eval_batch_size 16 --do_train --do_eval --output_dir /tmp/clm --fp16
