PER=2
deepspeed --include localhost:0,1,2,3 run_clm.py --deepspeed ds.json \
  --model_name_or_path EleutherAI/pythia-12b --dataset_name wikitext --dataset_config_name wikitext-103-raw-v1 \
  --do_train --do_eval --block_size 2048 --per_device_train_batch_size $PER --gradient_accumulation_steps $((32/$PER)) \
  --bf16 --num_train_epochs 1 --output_dir clm --overwrite_output_dir
