from colossalai.amp import AMP_TYPE

BATCH_SIZE = 44
NUM_EPOCHS = 60
SEQ_LEN = 1024
NUM_MICRO_BATCHES = 4
gradient_accumulation = 2
fp16 = dict(mode=AMP_TYPE.TORCH)
parallel = dict(pipeline=2, tensor=dict(size=4, mode="1d"))
