accelerate launch --num_processes 2 train.py \
    epochs=40 data@data_dict=clips train_dataloader.batch_size=10 train_dataloader.num_workers=7 \
    val_dataloader.batch_size=5 model=diffusion exp_dir=exp/d trainer.mixed_precision=bf16 trainer.gradient_accumulation_steps=2
