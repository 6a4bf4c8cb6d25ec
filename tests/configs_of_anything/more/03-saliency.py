_base_ = ["base.py"]

args = dict(
    base_seed=2718,
    batch_size=6,
    print_freq=25,
    epoch_num=120,
    use_amp=True,
    epoch_based=True,
)
optimizers = dict(
    lr=0.004,
    strategy="all",
    optimizer="sgd",
    optimizer_candidates=dict(sgd=dict(momentum=0.9, weight_decay=5e-4), adamw=dict(weight_decay=1e-4)),
)
data = dict(
    train=dict(name=["train"], shape=dict(h=320, w=384)),
    test=dict(name=["test"], shape=dict(h=320, w=384)),
)
