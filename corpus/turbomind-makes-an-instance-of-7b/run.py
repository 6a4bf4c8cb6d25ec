from lmdeploy import pipeline, TurbomindEngineConfig
backend_config = TurbomindEngineConfig(model_name="internlm2-chat-7b", rope_scaling_factor=2.0, session_len=160000)
pipe = pipeline("internlm/internlm2-chat-7b", backend_config=backend_config)
