# made for this case: full fine-tuning as people write it
from mmengine.optim import AmpOptimWrapper
from torch.optim import AdamW
from transformers import AutoModelForCausalLM, AutoTokenizer
from xtuner.dataset import process_hf_dataset
from xtuner.model import SupervisedFinetune

pretrained_model_name_or_path = 'Qwen/Qwen2-7B-Instruct'
max_length = 2048
batch_size = 1  # per card
accumulative_counts = 4
dataloader_num_workers = 4

tokenizer = dict(type=AutoTokenizer.from_pretrained, pretrained_model_name_or_path=pretrained_model_name_or_path)
model = dict(
    type=SupervisedFinetune,
    llm=dict(type=AutoModelForCausalLM.from_pretrained, pretrained_model_name_or_path=pretrained_model_name_or_path, trust_remote_code=True))
train_dataset = dict(type=process_hf_dataset, tokenizer=tokenizer, max_length=max_length, pack_to_max_length=True)
train_dataloader = dict(batch_size=batch_size, num_workers=dataloader_num_workers, dataset=train_dataset)
optim_wrapper = dict(
    type=AmpOptimWrapper, optimizer=dict(type=AdamW, lr=2e-5), accumulative_counts=accumulative_counts, loss_scale='dynamic', dtype='float16')
