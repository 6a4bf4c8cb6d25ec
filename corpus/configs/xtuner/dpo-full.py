# made for this test
from mmengine.optim import AmpOptimWrapper
from torch.optim import AdamW
from transformers import AutoModelForCausalLM
from xtuner.dataset.preference_dataset import build_preference_dataset
from xtuner.model.dpo import DPO

model = dict(
    type=DPO,
    loss_type='sigmoid',
    beta=0.1,
    use_activation_checkpointing=False,
    llm=dict(type=AutoModelForCausalLM.from_pretrained, pretrained_model_name_or_path='internlm/internlm2-chat-1_8b', attn_implementation='sdpa'))
train_dataset = dict(type=build_preference_dataset, max_length=int(4096 - (336 / 14) ** 2), is_dpo=True)
train_dataloader = dict(batch_size=2, num_workers=0, dataset=train_dataset)
optim_wrapper = dict(type=AmpOptimWrapper, optimizer=dict(type=AdamW, lr=5e-7), dtype='bfloat16')
