import argparse, torch
from datasets import Dataset
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import SFTConfig, SFTTrainer

def _sft(model, tok, records, lr, epochs, bs, out):
    ds = Dataset.from_list(records)
    args = SFTConfig(
        output_dir=out, num_train_epochs=epochs, per_device_train_batch_size=bs,
        gradient_accumulation_steps=2, learning_rate=lr, lr_scheduler_type="linear",
        warmup_steps=0, max_length=1024, bf16=True, logging_steps=25, save_strategy="no",
        report_to="none", packing=False, remove_unused_columns=False, dataloader_num_workers=0,
        neftune_noise_alpha=5.0, max_grad_norm=1e9,
    )
    SFTTrainer(model=model, args=args, train_dataset=ds, processing_class=tok).train()

def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--model", default="nvidia/Nemotron-Nano-9B-v2")
    ap.add_argument("--bs", type=int, default=4)
    ap.add_argument("--lr", type=float, default=2e-4)
    ap.add_argument("--epochs", type=int, default=1)
    ap.add_argument("--rank", type=int, default=32)
    a = ap.parse_args()
    tok = AutoTokenizer.from_pretrained(a.model)
    model = AutoModelForCausalLM.from_pretrained(a.model, torch_dtype=torch.bfloat16, device_map={"": 0})
    model = get_peft_model(model, LoraConfig(r=a.rank, lora_alpha=2 * a.rank, target_modules="all-linear", task_type="CAUSAL_LM"))
    _sft(model, tok, [], a.lr, a.epochs, a.bs, "out")

if __name__ == "__main__":
    main()
