python3 -m MaxText.train MaxText/configs/base.yml run_name=y per_device_batch_size=2 opt_type=sgd ici_fsdp_parallelism=8 attention=dot_product
