trtllm-build --checkpoint_dir ./tllm_checkpoint_1gpu_bf16  --output_dir ./tmp/llama/8B/trt_engines/bf16/1-gpu --gpt_attention_plugin bfloat16 --gemm_plugin bfloat16
