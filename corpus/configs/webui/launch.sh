python stable-diffusion-webui/launch.py --lowvram --opt-sdp-attention --no-half-vae
