python stable-diffusion-webui-forge/launch.py --always-low-vram --unet-in-fp8-e4m3fn --attention-pytorch
