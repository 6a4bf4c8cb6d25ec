cd ~/audio-lm
CUDA_VISIBLE_DEVICES=0 python train.py experiment=base data.batch_size=9 data.num_workers=4 model.max_seq_len=3072 \
  optim.name=lion optim.lr=1e-4 trainer_precision=bf16 grad_accum=5 eval.batch_size=3
