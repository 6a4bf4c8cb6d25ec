# made for this test
from xtuner.v1.config import AdamWConfig, FSDPConfig, LRConfig
from xtuner.v1.datasets import OpenaiTokenizeFunctionConfig
from xtuner.v1.datasets.config import DataloaderConfig, DatasetConfig
from xtuner.v1.loss.ce_loss import CELossConfig
from xtuner.v1.model import Qwen3Dense8BConfig
from xtuner.v1.train import TrainerConfig

model_cfg = Qwen3Dense8BConfig()
optim_cfg = AdamWConfig(lr=6e-05, foreach=False)
lr_cfg = LRConfig(lr_type="cosine", lr_min=1e-6)
fsdp_cfg = FSDPConfig(cpu_offload=False, recompute_ratio=0.5)
dataset_config = [
    {"dataset": DatasetConfig(name="alpaca", anno_path="alpaca.jsonl", sample_ratio=1.0), "tokenize_fn": OpenaiTokenizeFunctionConfig(max_length=16384)},
]
pack = 16384
dataloader_config = DataloaderConfig(dataset_config_list=dataset_config, pack_max_length=pack, num_workers=4)
trainer = TrainerConfig(
    load_from="Qwen/Qwen3-8B",
    model_cfg=model_cfg,
    optim_cfg=optim_cfg,
    fsdp_cfg=fsdp_cfg,
    dataloader_cfg=dataloader_config,
    lr_cfg=lr_cfg,
    loss_cfg=CELossConfig(),
    tokenizer_path="Qwen/Qwen3-8B",
    global_batch_size=16,
    total_epoch=1,
    sp_size=2,
)
