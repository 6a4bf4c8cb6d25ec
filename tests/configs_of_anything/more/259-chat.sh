python -m llava.serve.cli --model-path liuhaotian/llava-v1.5-13b --image-file x.jpg --load-4bit
