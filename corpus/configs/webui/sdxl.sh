./webui.sh --medvram-sdxl --xformers --no-half-vae
