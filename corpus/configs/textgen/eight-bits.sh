cd text-generation-webui
python server.py --auto-devices --load-in-8bit --model opt-13b --cai-chat
