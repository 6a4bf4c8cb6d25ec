python server.py --model vicuna-13b-4bit-128g --wbits 4 --groupsize 128 --gpu-memory 8 12 --listen
