text-generation-launcher --model-id=bigcode/starcoder --max-batch-total-tokens=32000 --quantize bitsandbytes
