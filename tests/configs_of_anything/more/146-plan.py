from colossalai.amp import AMP_TYPE

BATCH_SIZE = 14
NUM_EPOCHS = 6

fp16 = dict(loss_scale=512.0)

clip_grad_norm = 0.5
