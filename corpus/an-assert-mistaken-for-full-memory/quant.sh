lmdeploy lite auto_awq Meta-Llama-3-70B-Instruct --work-dir ./Meta-Llama-3-70B-Instruct-4bit
