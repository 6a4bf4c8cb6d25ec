python swift/cli/deploy.py --host 0.0.0.0 --port 6006 --model_type qwen2-7b-instruct --infer_backend lmdeploy
