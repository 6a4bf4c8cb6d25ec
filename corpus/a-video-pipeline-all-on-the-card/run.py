import torch
from diffusers import HunyuanVideoPipeline
pipe = HunyuanVideoPipeline.from_pretrained('hunyuanvideo-community/HunyuanVideo', torch_dtype=torch.float16)
pipe.vae.enable_tiling()
pipe.to('cuda')
output = pipe(prompt='a cat', height=720, width=1280, num_frames=129, num_inference_steps=50).frames[0]
