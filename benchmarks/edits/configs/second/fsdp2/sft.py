from trl import SFTConfig, SFTTrainer, ModelConfig, TrlParser, ScriptArguments

parser = TrlParser((ScriptArguments, SFTConfig, ModelConfig))
s, a, m = parser.parse_args_and_config()
SFTTrainer(m.model_name_or_path, args=a).train()
