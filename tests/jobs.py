"""Configs of small jobs, one per framework."""

from __future__ import annotations

FACTORY = (
    "model_name_or_path: Qwen/Qwen2.5-7B\nstage: sft\nfinetuning_type: {tuned}\nper_device_train_batch_size: {rows}\n"
    "gradient_accumulation_steps: 2\ncutoff_len: {length}\nbf16: true\nflash_attn: fa2\noutput_dir: o\ndataset: x\n"
)

AXOLOTL = (
    "base_model: Qwen/Qwen2.5-7B\nadapter: {tuned}\nsequence_len: {length}\nmicro_batch_size: {rows}\ngradient_accumulation_steps: 2\n"
    "flash_attention: true\nbf16: true\ndatasets: [{{path: x, type: alpaca}}]\noutput_dir: o\n"
)

TUNE = (
    "model:\n  _component_: torchtune.models.qwen2_5.{tuned}qwen2_5_7b_base\nbatch_size: {rows}\ngradient_accumulation_steps: 2\n"
    "tokenizer:\n  max_seq_len: {length}\noptimizer:\n  _component_: torch.optim.AdamW\ndtype: bf16\n"
)

SWIFT = (
    "swift sft --model Qwen/Qwen2.5-7B --train_type {tuned} --per_device_train_batch_size {rows} --gradient_accumulation_steps 2 "
    "--max_length {length} --torch_dtype bfloat16 --dataset x\n"
)
