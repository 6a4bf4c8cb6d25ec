from denoising_diffusion_pytorch import GaussianDiffusion, Trainer, Unet

unet = Unet(dim=48, dim_mults=(1, 2, 4), flash_attn=True)
process = GaussianDiffusion(unet, image_size=144, timesteps=150)
trainer = Trainer(
    process,
    "pictures/of/birds",
    train_batch_size=40,
    train_lr=6e-5,
    train_num_steps=30000,
    gradient_accumulate_every=3,
    ema_decay=0.99,
    amp=True,
)
trainer.train()
