python train.py \
	--md_max_len=80 \
	--total_max_len=768 \
	--num_code_cell=64 \
	--batch_size=18 \
	--epochs=8 \
	--n_workers=5 \
	--feature-file-path='./cells' \
	--device='cuda:1'
