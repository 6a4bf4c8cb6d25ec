REM run accelerate config first
accelerate launch^
 train.py^
 --mixed_precision="bf16"^
 --train_data_dir="./d"^
 --train_batch_size=9^
 --num_train_epochs=500^
 --gradient_accumulation_steps=4^
 --learning_rate=1e-4^
 --dataloader_num_workers=2^
 --seed=43
REM --use_ema
