import argparse
from accelerate import Accelerator
from datasets import load_dataset
import torch
from torch.utils.data import DataLoader
from transformers import BertTokenizer, ElectraConfig, ElectraForMaskedLM, ElectraForPreTraining

def main():
    parser = argparse.ArgumentParser()

    parser.add_argument("--dataset_name", default=None)
    parser.add_argument("--train_file", default=None)
    parser.add_argument("--text_column", default="body")
    parser.add_argument("--tokenizer_dir", default="./tok")
    parser.add_argument("--output_dir", default="./electra")
    parser.add_argument("--max_seq_length", type=int, default=256)
    parser.add_argument("--num_train_epochs", type=int, default=3)
    parser.add_argument("--per_device_train_batch_size", type=int, default=64)
    parser.add_argument("--per_device_eval_batch_size", type=int, default=64)
    parser.add_argument("--gradient_accumulation_steps", type=int, default=1)
    parser.add_argument("--learning_rate", type=float, default=5e-4)
    parser.add_argument("--mlm_probability", type=float, default=0.15)
    parser.add_argument("--dataloader_num_workers", type=int, default=8)
    parser.add_argument("--save_every_epoch", action="store_true")

    args = parser.parse_args()

    accelerator = Accelerator(mixed_precision="bf16")
    tokenizer = BertTokenizer.from_pretrained(args.tokenizer_dir)
    generator = ElectraForMaskedLM(ElectraConfig(vocab_size=len(tokenizer)))
    discriminator = ElectraForPreTraining(ElectraConfig(vocab_size=len(tokenizer)))
    data = load_dataset("json", data_files=args.train_file)["train"]
    loader = DataLoader(data, batch_size=args.per_device_train_batch_size, shuffle=True, num_workers=args.dataloader_num_workers)
    optimizer = torch.optim.AdamW([*generator.parameters(), *discriminator.parameters()], lr=args.learning_rate)
    generator, discriminator, optimizer, loader = accelerator.prepare(generator, discriminator, optimizer, loader)
    for epoch in range(args.num_train_epochs):
        for batch in loader:
            loss = generator(**batch).loss
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()

if __name__ == "__main__":
    main()
