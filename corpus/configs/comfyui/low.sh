cd /opt && python ComfyUI/main.py --listen 0.0.0.0 --lowvram --fp8_e4m3fn-unet --use-pytorch-cross-attention
