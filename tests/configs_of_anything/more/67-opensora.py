dataset = dict(type="VariableVideoTextDataset", transform_name="resize_crop")
bucket_config = {"480p": {1: (0.5, 8)}}
grad_checkpoint = True
num_workers = 9
num_bucket_build_workers = 16
dtype = "bf16"
plugin = "zero2"
model = dict(type="STDiT3-XL/2", from_pretrained="/ckpt/stdit", enable_flash_attn=True)
batch_size = None
seed = 42
outputs = "outputs"
epochs = 10
log_every = 10
ckpt_every = 200
load = None
grad_clip = 1.0
lr = 1e-4
