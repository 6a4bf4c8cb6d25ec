echo '<<< TRAIN LM >>>'
python train_LM.py --checkpoint_dir './ck/' --min_lr 1e-6 --max_lr 1e-4 --accumulate_gradients 5 --micro_batch_number 6 --max_allowed_utterance_gap 10.0 --max_seq_length 1900
