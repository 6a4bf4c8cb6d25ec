pipe = CogView3PlusPipeline.from_pretrained(
    "THUDM/CogView3-Plus-3B", 
    torch_dtype=torch.float16
    ).to("cuda")

pipe.enable_model_cpu_offload()
pipe.vae.enable_slicing()
pipe.vae.enable_tiling()
