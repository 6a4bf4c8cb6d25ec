python opt.py facebook/opt-66b c4 --wbits 4 --act-order
