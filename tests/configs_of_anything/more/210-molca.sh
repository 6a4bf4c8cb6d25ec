{
export TOKENIZERS_PARALLELISM=false;
python stage2.py --devices '0,1,2' --filename "s2" --opt_model 'facebook/galactica-1.3b' --mode pretrain --tune_gnn --llm_tune lora --inference_batch_size 6 --root "data/Pub" --batch_size 14 --accumulate_grad_batches 3 --precision bf16-mixed --num_workers 8;
exit
}
