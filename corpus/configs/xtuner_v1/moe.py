# made for this test
from xtuner.v1.config import FSDPConfig, MuonConfig
from xtuner.v1.datasets.config import DataloaderConfig
from xtuner.v1.loss.ce_loss import CELossConfig
from xtuner.v1.model.moe.qwen3 import Qwen3MoE30BA3Config
from xtuner.v1.train import TrainerConfig

moe = Qwen3MoE30BA3Config(compile_cfg=False)
trainer = TrainerConfig(
    load_from="Qwen/Qwen3-30B-A3B", model_cfg=moe, optim_cfg=MuonConfig(lr=1e-4),
    fsdp_cfg=FSDPConfig(ep_size=8, reshard_after_forward=False, torch_compile=False, cpu_offload=True),
    dataloader_cfg=DataloaderConfig(), loss_cfg=CELossConfig(mode="chunk", chunk_size=1024), global_batch_size=64, intra_layer_micro_batch=2)
