# made for this test: a QLoRA configuration as people copy and change it
import torch
from datasets import load_dataset
from mmengine.hooks import CheckpointHook
from mmengine.optim import AmpOptimWrapper
from peft import LoraConfig
from torch.optim import AdamW
from transformers import AutoModelForCausalLM, AutoTokenizer, BitsAndBytesConfig
from xtuner.dataset import process_hf_dataset
from xtuner.engine.runner import TrainLoop
from xtuner.model import SupervisedFinetune
from xtuner.parallel.sequence import SequenceParallelSampler

base = 'Qwen/Qwen2-7B-Instruct'
max_length = 4 * 1024
sequence_parallel_size = 2
batch_size = 1  # per card
accumulative_counts = 8
accumulative_counts *= sequence_parallel_size
use_varlen_attn = False

tokenizer = dict(type=AutoTokenizer.from_pretrained, pretrained_model_name_or_path=base)
model = dict(
    type=SupervisedFinetune,
    use_varlen_attn=use_varlen_attn,
    llm=dict(
        type=AutoModelForCausalLM.from_pretrained,
        pretrained_model_name_or_path=base,
        torch_dtype=torch.float16,
        quantization_config=dict(
            type=BitsAndBytesConfig, load_in_4bit=True, load_in_8bit=False, bnb_4bit_use_double_quant=False, bnb_4bit_quant_type='nf4')),
    lora=dict(type=LoraConfig, r=32, lora_alpha=16, lora_dropout=0.1, bias='none', task_type='CAUSAL_LM'))
train_dataset = dict(
    type=process_hf_dataset,
    dataset=dict(type=load_dataset, path='json'),
    tokenizer=tokenizer,
    max_length=max_length,
    pack_to_max_length=True)
train_dataloader = dict(
    batch_size=batch_size,
    num_workers=4,
    dataset=train_dataset,
    sampler=dict(type=SequenceParallelSampler, shuffle=True))
optim_wrapper = dict(
    type=AmpOptimWrapper,
    optimizer=dict(type=AdamW, lr=2e-4),
    accumulative_counts=accumulative_counts,
    dtype='float16')
train_cfg = dict(type=TrainLoop, max_epochs=3)
default_hooks = dict(checkpoint=dict(type=CheckpointHook, by_epoch=False, interval=500))
custom_hooks = []
if use_varlen_attn:
    custom_hooks += [dict(type='VarlenAttnArgsToMessageHubHook')]
