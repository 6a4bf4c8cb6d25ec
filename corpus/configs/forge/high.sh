python stable-diffusion-webui-forge/launch.py --always-high-vram --cuda-malloc --pin-shared-memory --all-in-fp32
