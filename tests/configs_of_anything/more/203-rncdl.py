from omegaconf import OmegaConf
train = OmegaConf.create(dict(output_dir="./o", init_checkpoint="", max_iter=60000, amp=dict(enabled=True), ddp=dict(broadcast_buffers=False, fp16_compression=False), eval_period=2500, device="cuda"))
dataloader = OmegaConf.create(dict(total_batch_size=12, num_workers=5, image_size=1024))
