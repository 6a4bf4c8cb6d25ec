accelerate launch --config_file acc.yaml -m trl.scripts.dpo --config dpo.yaml
