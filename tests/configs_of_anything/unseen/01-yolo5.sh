python -m torch.distributed.launch --nproc_per_node 2 yolov5/train.py --img 1536 --batch 12 --epochs 40 --data reef.yaml --weights yolov5l6.pt --workers 3 --adam
