export COMMANDLINE_ARGS="--always-no-vram --cuda-stream"
