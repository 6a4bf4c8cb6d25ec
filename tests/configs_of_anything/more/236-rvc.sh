python train_nsf_sim_cache_sid_load_pretrain.py -e "exp" -sr 40k -f0 1 -bs 14 -g 0-1 -te 200 -se 20 -pg p.pth -pd q.pth -l 0 -c 0 -sw 0 -v v2
