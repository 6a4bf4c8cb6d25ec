import torch
import typer


def main(
    data: str,
    batch_size: int = typer.Option(26, help="rows"),
    max_length: int = typer.Option(448),
    epochs: int = 4,
    lr: float = 2e-5,
    model_name: str = "microsoft/deberta-v3-large",
    bf16: bool = True,
) -> None:
    fit(data, batch_size, max_length, epochs, lr, model_name, torch.bfloat16 if bf16 else torch.float32)


typer.run(main)
