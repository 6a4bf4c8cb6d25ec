import click
import torch
from peft import get_peft_model


@click.command()
@click.option("--base_model", "base_model", type=str, default="decapoda-research/llama-7b-hf", required=True)
@click.option("--data_path", "data_path", type=str, default="./data/alpaca.json")
@click.option("--batch_size", "batch_size", type=int, default=96)
@click.option("--micro_batch_size", "micro_batch_size", type=int, default=3)
@click.option("--num_epochs", "num_epochs", type=int, default=3)
@click.option("--learning_rate", "learning_rate", type=float, default=3e-4)
@click.option("--cutoff_len", "cutoff_len", type=int, default=384)
@click.option("--lora_r", "lora_r", type=int, default=4)
def main(**kwargs):
    pass
