import jax
import optax
from flax.training import train_state

args = dict(heads=8, d_model=384, n_layers=6, batch_size=6, train_seq_len=769)


def state(params, net):
    return train_state.TrainState.create(apply_fn=net.apply, params=params, tx=optax.adam(3e-4))


checkpoint_step = 2000
