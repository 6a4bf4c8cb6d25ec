import fire

from adder.train import train


class Trainer:
    def train(self, samples_scoring: int = 80, max_iters: int = 40000, block_size: int = 160, batch_size: int = 28, learning_rate: float = 1e-3) -> None:
        train(block_size=block_size, batch_size=batch_size)

    def score(self, samples_scoring: int = 20) -> None:
        pass


if __name__ == "__main__":
    fire.Fire(Trainer)
