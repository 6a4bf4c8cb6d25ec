python exllamav2/examples/chat.py -m /models/qwq-32b-exl2 -mode llama -l 8192 -cq4
