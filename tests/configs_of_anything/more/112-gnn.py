import click
import torch
import torch_geometric


@click.command()
@click.option("--hidden-dim", default=256)
@click.option("--batch-size", "-b", default=640, show_default=True)
@click.option("--n-workers", default=7)
@click.option("--fp16/--no-fp16", default=True)
@click.option("--lr", default=1e-3)
def train(**kw):
    pass
