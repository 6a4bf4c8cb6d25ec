docker run --gpus all --shm-size 32g --ipc=host \
  -p 30000:30000 \
  -v /srv/model:/model \
  lmsysorg/sglang:v0.5.12 \
  python3 -m sglang.launch_server \
    --model-path /model \
    --tp 2 \
    --host 0.0.0.0 --port 30000 \
    --reasoning-parser qwen3 \
    --tool-call-parser qwen3_coder \
    --mem-fraction-static 0.88 \
    --mamba-scheduler-strategy extra_buffer
