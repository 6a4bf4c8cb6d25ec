#!/usr/bin/env bash
set -euo pipefail
ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
PYTHON_BIN="${PYTHON_BIN:-python3}"
RUN_KIND="${1:-smoke}"
CONFIG_DIR="${ROOT}/configs"
MODEL_PATH="${MODEL_PATH:-Qwen/Qwen2.5-VL-7B-Instruct}"
ADAPTER_PATH="${ADAPTER_PATH:-${ROOT}/adapters/a}"
HYDRA_OVERRIDES=()
if [[ "${RUN_KIND}" == "smoke" ]]; then
  HYDRA_OVERRIDES+=(trainer.total_training_steps=2 data.train_batch_size=8)
fi
cd "${ROOT}"
"${PYTHON_BIN}" -u -m verl.trainer.main_ppo \
  --config-path "${CONFIG_DIR}" \
  --config-name expert_grpo_2gpu \
  data.train_files="${ROOT}/data/train.parquet" \
  data.val_files="${ROOT}/data/val.parquet" \
  actor_rollout_ref.model.path="${MODEL_PATH}" \
  actor_rollout_ref.model.lora_adapter_path="${ADAPTER_PATH}" \
  actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=4 \
  actor_rollout_ref.rollout.gpu_memory_utilization=0.6 \
  trainer.logger='["console","swanlab"]' \
  trainer.project_name="restore" \
  trainer.experiment_name="${RUN_KIND}" \
  trainer.n_gpus_per_node=2 \
  "${HYDRA_OVERRIDES[@]}" \
  "$@"
