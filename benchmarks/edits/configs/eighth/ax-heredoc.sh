MODEL_NAME=Mistral-7B-v0.1
MODEL_TYPE=MistralForCausalLM
TOKENIZER_TYPE=LlamaTokenizer
DATASETS="
  - path: data/train.jsonl
    type: alpaca
"
MAX_SEQ_LEN=4096
ADAPTER=lora
LORA_RANK=64
LORA_ALPHA=128
GRADIENT_ACCUMULATION_STEPS=4
MICRO_BATCH_SIZE=8
EPOCHS=3
OPTIMIZER=adamw_torch
LR_SCHEDULER=cosine
LR=0.0002
FLASH_ATTENTION=false
DEVICE=0
CONFIG_FILE=configs/${MODEL_NAME}.yml
OUTPUT_DIR=out/${MODEL_NAME}-${ADAPTER}

cat > ${CONFIG_FILE} << EOF
base_model: models/${MODEL_NAME}
model_type: ${MODEL_TYPE}
tokenizer_type: ${TOKENIZER_TYPE}

load_in_8bit: false
load_in_4bit: false
strict: false

datasets:
${DATASETS}
dataset_prepared_path:
val_set_size: 0.05
output_dir: ${OUTPUT_DIR}

sequence_len: ${MAX_SEQ_LEN}
sample_packing: false
pad_to_sequence_len: false

adapter: ${ADAPTER}
lora_r: ${LORA_RANK}
lora_alpha: ${LORA_ALPHA}
lora_dropout: 0.05
lora_target_linear: true

gradient_accumulation_steps: ${GRADIENT_ACCUMULATION_STEPS}
micro_batch_size: ${MICRO_BATCH_SIZE}
num_epochs: ${EPOCHS}
optimizer: ${OPTIMIZER}
lr_scheduler: ${LR_SCHEDULER}
learning_rate: ${LR}

bf16: auto
fp16:
tf32: false

gradient_checkpointing: false
logging_steps: 1
flash_attention: ${FLASH_ATTENTION}
warmup_steps: 10
weight_decay: 0.0
EOF

mkdir ${OUTPUT_DIR}
cp ${CONFIG_FILE} ${OUTPUT_DIR}
CUDA_VISIBLE_DEVICES=${DEVICE} accelerate launch -m axolotl.cli.train ${CONFIG_FILE} --debug
