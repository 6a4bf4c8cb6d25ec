export CUDA_VISIBLE_DEVICES=0,1,2,3
deepspeed train_dalle.py --image_text_folder d --deepspeed --distr_backend deepspeed --fp16 --batch_size 12 --ga_steps 4 --truncate_captions --attn_types full,axial_row --text_seq_len 192 --image_size 224 --num_workers 4
