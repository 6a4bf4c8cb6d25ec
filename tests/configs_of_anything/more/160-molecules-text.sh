{
export TOKENIZERS_PARALLELISM=false;
python stage2.py --devices '0,2,5' --opt_model 'laituan245/molt5-base' --mode pretrain --prompt '[MOL]{}[/MOL]. ' --inference_batch_size 6 --batch_size 10 --accumulate_grad_batches 3;

exit
}
