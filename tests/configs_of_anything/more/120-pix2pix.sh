python train.py --dataroot ./datasets/maps --name maps_cyclegan --model cycle_gan --gpu_ids 0,1 --batch_size 3 --load_size 572 --crop_size 512 --num_threads 6 --n_epochs 100 --netG unet_256
