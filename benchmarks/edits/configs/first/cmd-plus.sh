#!/bin/bash
BATCH=8
PACK=0
while [[ $# -gt 0 ]]; do
  case $1 in
    --batch) BATCH="$2"; shift 2 ;;
    --pack) PACK=1; shift ;;
    *) break ;;
  esac
done
cmd=(trl sft --model_name_or_path meta-llama/Llama-3.1-8B --dataset_name trl-lib/Capybara --output_dir out)
cmd+=(--per_device_train_batch_size "$BATCH" --max_length 4096)
if [[ $PACK == 1 ]]; then
  cmd+=(--packing)
fi
"${cmd[@]}"
