python inference/convert.py --hf-ckpt-path models/DeepSeek-V3/ --save-path models/DeepSeek-V3-Demo --n-experts 256 --model-parallel 16  
