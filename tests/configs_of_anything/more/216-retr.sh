MODEL_NAME="BAAI/bge-large-zh-v1.5"
torchrun --nproc_per_node 2 -m retrievals.pipelines.embed --output_dir o --model_name_or_path $MODEL_NAME --do_train --train_data t.jsonl --learning_rate 3e-5 --fp16 --num_train_epochs 5 --per_device_train_batch_size 24 --dataloader_drop_last True --query_max_length 64 --document_max_length 448 --train_group_size 6
