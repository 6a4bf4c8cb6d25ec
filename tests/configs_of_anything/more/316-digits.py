from denoising_diffusion_pytorch import Unet, GaussianDiffusion, Trainer

model = Unet(dim = 64, channels = 1, dim_mults = (1, 2, 4)).cuda()

diffusion = GaussianDiffusion(
    model,
    image_size = 28,
    timesteps = 1000,           # number of steps
    sampling_timesteps = 250,
    loss_type = 'l1'
).cuda()

trainer = Trainer(
    diffusion,
    'mnist',
    train_batch_size = 32,
    save_and_sample_every = 333,
    train_lr = 1e-4,
    train_num_steps = 700000,         # total training steps
    gradient_accumulate_every = 2,    # gradient accumulation steps
    ema_decay = 0.995,
    amp = False
)

trainer.train()
