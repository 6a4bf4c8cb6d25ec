import typer
from transformers import AutoModelForCausalLM
app = typer.Typer()
@app.command()
def main(base_model: str = "tiiuae/falcon-7b", ctx_len: int = 1536, bsz: int = 2, accum: int = 16, load_in_4bit: bool = True, lora_r: int = 24, optim: str = "paged_adamw_8bit", epochs: int = 2):
    pass
if __name__ == "__main__":
    app()
