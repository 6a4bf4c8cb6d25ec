dataset = dict(type="VariableVideoTextDataset", frame_interval=3, transform_name="resize_crop")
bucket_config = {"144p": {2: (1.0, 1)}}
num_workers = 7
dtype = "bf16"
grad_checkpoint = True
plugin = "zero2"
sp_size = 2
model = dict(type="STDiT3-3B/2", from_pretrained=None, enable_flashattn=True)
vae = dict(type="VideoAutoencoderKL", micro_batch_size=4)
text_encoder = dict(type="t5", from_pretrained="DeepFloyd/t5-v1_1-xxl", model_max_length=300)
epochs = 100
batch_size = 3
lr = 2e-5
