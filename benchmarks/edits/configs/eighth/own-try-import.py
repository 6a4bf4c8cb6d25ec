import os, torch
from inspect import signature
from datasets import load_dataset
from transformers import AutoModelForCausalLM, AutoTokenizer, BitsAndBytesConfig, TrainingArguments
from peft import LoraConfig, TaskType, get_peft_model
from trl import SFTTrainer
try:
    from trl import SFTConfig
    HAS_SFTCONFIG = True
except ImportError:
    HAS_SFTCONFIG = False

MODEL_NAME = os.environ.get("MODEL", "Qwen/Qwen2.5-7B-Instruct")
OUTPUT_DIR = "out"
BATCH_SIZE = int(os.environ.get("BS", 8))
GRAD_ACCUM = 4
LR, EPOCHS, MAX_LEN = 2e-4, 2, 2048
CUDA = torch.cuda.is_available()
BF16 = CUDA and torch.cuda.is_bf16_supported()
FP16 = CUDA and not BF16
DTYPE = torch.bfloat16 if BF16 else torch.float16

bnb_config = (
    BitsAndBytesConfig(
        load_in_4bit=True,
        bnb_4bit_use_double_quant=True,
        bnb_4bit_quant_type="nf4",
        bnb_4bit_compute_dtype=torch.bfloat16 if BF16 else torch.float16,
    )
    if CUDA
    else None
)

model = AutoModelForCausalLM.from_pretrained(
    MODEL_NAME,
    device_map="auto" if CUDA else "cpu",
    quantization_config=bnb_config,
    torch_dtype=DTYPE,
)

peft_cfg = LoraConfig(
    task_type=TaskType.CAUSAL_LM,
    r=8, lora_alpha=16, lora_dropout=0.05,  #few of them
    target_modules=["q_proj","k_proj","v_proj","o_proj","gate_proj","up_proj","down_proj"]
)
model = get_peft_model(model, peft_cfg)

if hasattr(model, "gradient_checkpointing_disable"):
    model.gradient_checkpointing_disable()

eval_kw = (
    {"eval_strategy": "steps"}
    if "eval_strategy" in signature(TrainingArguments.__init__).parameters
    else {"evaluation_strategy": "steps"}
)

if HAS_SFTCONFIG:
    args = SFTConfig(
        output_dir=OUTPUT_DIR,
        per_device_train_batch_size=BATCH_SIZE,
        per_device_eval_batch_size=BATCH_SIZE,
        gradient_accumulation_steps=GRAD_ACCUM,
        learning_rate=LR,
        num_train_epochs=EPOCHS,
        logging_steps=50,
        eval_steps=1000,
        bf16=BF16,
        fp16=FP16,
        optim="paged_adamw_8bit" if CUDA else "adamw_torch",
        report_to="none",
        max_grad_norm=1.0,
        ##sft
        dataset_text_field="text",
        max_length=MAX_LEN,
        packing=False,
        dataloader_num_workers=4,
        **eval_kw,
    )
else:
    args = TrainingArguments(
        output_dir=OUTPUT_DIR,
        per_device_train_batch_size=BATCH_SIZE,
        gradient_accumulation_steps=GRAD_ACCUM,
        learning_rate=LR,
        bf16=BF16,
        fp16=FP16,
        **eval_kw,
    )
data = load_dataset("json", data_files="d.jsonl", split="train")
SFTTrainer(model=model, args=args, train_dataset=data).train()
