export CUDA_VISIBLE_DEVICES=0,1,2,3
python src/weatherode/train.py --config configs/regional.yaml \
    --trainer.strategy=ddp \
    --trainer.devices=4 \
    --trainer.max_epochs=50 \
    --trainer.precision=16 \
    --data.root_dir=/data/npz \
    --data.predict_range=6 \
    --model.lr=5e-4 --model.beta_1="0.9" \
    --model.net.patch_size=2 \
    --model.net.img_size=[32,64] \
    --model.net.depth=4 \
    --data.batch_size=10 \
    --data.num_workers=2 \
    --model.warmup_epochs=20000
