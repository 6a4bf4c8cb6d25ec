REM run accelerate config first
accelerate launch^
 train.py^
 --mixed_precision="fp16"^
 --train_data_dir="./songs/parts"^
 --pretrained_model_name_or_path="./models/spectra_12"^
 --train_batch_size=10^
 --num_train_epochs=900^
 --gradient_accumulation_steps=2^
 --learning_rate=2e-4^
 --dataloader_num_workers=3^
 --seed=11

REM --gradient_checkpointing
