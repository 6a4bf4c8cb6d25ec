import typer
import torch

app = typer.Typer()


@app.command()
def finetune(model_name: str = "EleutherAI/pythia-1.4b", bs: int = 5, ctx_len: int = 960, accum: int = 7, epochs: int = 1, lr: float = 1e-5, dtype: str = "bfloat16"):
    pass


if __name__ == "__main__":
    app()
