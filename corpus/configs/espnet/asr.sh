python3 -m espnet2.bin.asr_train --ngpu 2 --config conf/train_asr.yaml --batch_type numel --batch_bins 8000000 --accum_grad 4 --use_amp true
