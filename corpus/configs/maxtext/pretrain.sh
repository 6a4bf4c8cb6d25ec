python3 -m maxtext.trainers.pre_train.train src/maxtext/configs/base.yml run_name=x model_name=llama3.1-8b per_device_batch_size=8 max_target_length=4096 remat_policy=minimal dataset_type=synthetic
