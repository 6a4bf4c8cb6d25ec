horizon = 24
agent_cfg = dict(
    type="BC",
    batch_size=192,
    actor_cfg=dict(
        type="TanhActor",
        nn_cfg=dict(type="RNN", hidden_dim=128, n_layers=2),
    ),
    optim_cfg=dict(type="Adam", lr=2e-4),
)
train_cfg = dict(on_policy=False, total_steps=90000)
