mlx_lm.lora --train --model mlx-community/Llama-3.2-3B-Instruct-4bit --data data --batch-size 2 --num-layers 8 --max-seq-length 4096 --grad-checkpoint
