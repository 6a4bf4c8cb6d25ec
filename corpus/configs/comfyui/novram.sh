python3 /workspace/ComfyUI/main.py --novram --disable-smart-memory --cpu-vae
