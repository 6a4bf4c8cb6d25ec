from trlx.data.default_configs import TRLConfig, TrainConfig

config = TRLConfig(
    train=TrainConfig(
        seq_length=560,
        epochs=40,
        total_steps=10000,
        batch_size=9,
        checkpoint_interval=10000,
        eval_interval=100,
        minibatch_size=3,
    ),
)
