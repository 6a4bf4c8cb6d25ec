GPU_ID=${1}
python train_sr.py --train-file "./train.txt" \
                --eval-file "./val.txt" \
                --scale 4 \
                --num-features 64 \
                --num-blocks 16 \
                --num-layers 8 \
                --lr 1e-4 \
                --batch-size 14 \
                --patch-size 24 \
                --num-epochs 750 \
                --num-workers 9 \
                --gpu-id ${GPU_ID}
