method=stack
layers=8
epoch=1
batch_size=32 
gradient_accumulation=8
config_file=acc/ds.yaml
output_dir=exps/$method
mkdir -p $output_dir
cp $0 $output_dir
accelerate launch --config_file $config_file src/run_translation.py \
    --model_name_or_path model \
    --resume_from_checkpoint ${resume_from_checkpoint:-""} \
    --encoder_layer_num ${layers} \
    --encoder_method $method \
    --run_mode ${run_mode:-""} \
    --use_fast_tokenizer \
    --do_eval \
    --do_train \
    --learning_rate 5e-4 \
    --lr_scheduler_type inverse_sqrt \
    --load_best_model_at_end  \
    --output_dir $output_dir \
    --per_device_train_batch_size ${batch_size} \
    --per_device_eval_batch_size ${batch_size} \
    --gradient_accumulation_steps ${gradient_accumulation} \
    --num_train_epochs ${epoch} \
    --predict_with_generate \
    --max_source_length 256 --max_target_length 256 \
    --bf16
