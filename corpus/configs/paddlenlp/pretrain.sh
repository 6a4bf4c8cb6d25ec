python -u -m paddle.distributed.launch --gpus 0,1,2,3 run_pretrain.py --model_name_or_path meta-llama/Llama-2-7b --per_device_train_batch_size 2 \
  --tensor_parallel_degree 2 --sharding stage1 --recompute 1 --fp16 1 --fp16_opt_level O2 --max_seq_length 4096
