#!/bin/bash
python3 -m venv venv
source venv/bin/activate
pip install -r requirements.txt

cat <<EOF > ds_config.json
{
  "optimizer": { "type": "AdamW", "params": { "lr": 1e-4 } },
  "zero_optimization": {
    "stage": 3,
    "offload_optimizer": { "device": "cpu" },
    "offload_param": { "device": "cpu" }
  },
  "bf16": { "enabled": true },
  "train_micro_batch_size_per_gpu": 8,
  "gradient_clipping": 1.0
}
EOF

deepspeed --num_gpus 4 run_clm.py --model_name_or_path Qwen/Qwen2.5-7B --dataset_name wikitext --do_train --bf16 --block_size 4096 --per_device_train_batch_size 8 --output_dir out --deepspeed ds_config.json
