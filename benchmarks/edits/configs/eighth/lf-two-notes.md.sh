export CUDA_VISIBLE_DEVICES=6
export PYTHONPATH=/srv/drift/LLaMA-Factory:$PYTHONPATH

cd /srv/drift/LLaMA-Factory

echo "start on card 6"
date

TRAIN="${ROOT}/train/compose.yaml"
RPE_CONFIG_PATH="${ROOT}/rpe.yaml" llamafactory-cli train "${TRAIN}" \
    model_name_or_path=Qwen/Qwen2.5-32B-Instruct per_device_train_batch_size=2 cutoff_len=4096

echo done
