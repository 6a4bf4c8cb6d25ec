import fire
import torch

from mylib import build, loop


def train(
    base_model: str = "huggyllama/llama-7b",
    data_path: str = "alpaca.json",
    batch_size: int = 128,
    micro_batch_size: int = 4,
    num_epochs: int = 3,
    learning_rate: float = 3e-4,
    cutoff_len: int = 512,
    lora_r: int = 8,
    lora_alpha: int = 16,
    load_in_8bit: bool = True,
):
    steps = batch_size // micro_batch_size
    model = build(base_model, lora_r, load_in_8bit)
    loop(model, data_path, steps, cutoff_len, num_epochs, learning_rate)
    torch.save(model.state_dict(), "out.pt")


if __name__ == "__main__":
    fire.Fire(train)
