from lmdeploy import TurbomindEngineConfig, pipeline

pipe = pipeline(
    "internlm/internlm2_5-7b-chat",
    backend_config=TurbomindEngineConfig(tp=2, session_len=8192, cache_max_entry_count=0.4),  # shared with another job
)
