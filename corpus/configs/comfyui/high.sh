python -s ComfyUI/main.py --windows-standalone-build --highvram --force-fp32
