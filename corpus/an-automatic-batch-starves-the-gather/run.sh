accelerate launch -m lm_eval --model hf --model_args pretrained=/local_model,trust_remote_code=True --tasks lambada_openai --batch_size auto
