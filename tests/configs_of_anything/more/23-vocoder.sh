CUDA_VISIBLE_DEVICES='0,1,2' python3 -m trainer.distribute --script vocoder.py --dataset_name voices \
    --language ta \
    --batch_size 18 \
    --batch_size_eval 9 \
    --batch_group_size 5 \
    --epochs 4000 \
    --num_loader_workers 8 \
    --mixed_precision t \
    --run_description "vocoder"
