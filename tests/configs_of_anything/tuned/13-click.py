import click
import torch


@click.command()
@click.option("--data", type=click.Path(exists=True))
@click.option("--batch-size", default=24, show_default=True, help="images per step")
@click.option("--image-size", default=512)
@click.option("--epochs", "n_epochs", default=40)
@click.option("--lr", default=2e-4)
@click.option("--num-workers", default=5)
@click.option("--fp16/--no-fp16", default=True)
def main(data, batch_size, image_size, n_epochs, lr, num_workers, fp16):
    """Train the denoiser."""
    scaler = torch.cuda.amp.GradScaler(enabled=fp16)
    run(data, batch_size, image_size, n_epochs, lr, num_workers, scaler)


main()
