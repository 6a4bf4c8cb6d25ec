mlx_lm.lora --model Qwen/Qwen3-4B --train --data data --fine-tune-type full --batch-size 8 --num-layers -1 --max-seq-length 4096 --iters 500
