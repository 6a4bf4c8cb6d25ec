import click, torch
from transformers import AutoModelForCausalLM, TrainingArguments, Trainer


@click.command()
@click.option("--batch-size", default=16)
@click.option("--lr", default=1e-5)
def main(batch_size, lr):
    model = AutoModelForCausalLM.from_pretrained("EleutherAI/pythia-6.9b")
    args = TrainingArguments(
        output_dir="o", per_device_train_batch_size=batch_size, learning_rate=lr, gradient_checkpointing=False, optim="adamw_torch"
    )
    Trainer(model=model, args=args).train()


main()
