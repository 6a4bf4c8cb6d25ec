python train_nsf_sim_cache_sid_load_pretrain.py -e voice -sr 40k -f0 1 -bs 7 -g 0-1 -te 200 -se 10 -pg pretrained/f0G40k.pth -pd pretrained/f0D40k.pth -l 0 -c 0
