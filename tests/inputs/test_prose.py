"""Pages whose sentences alone say what happened: the status, when it failed, and the facts that a person wrote."""

from __future__ import annotations

import dataclasses

import pytest

import diagnose
from diagnose import catalogue, rule_files
from diagnose.facts import Value
from diagnose.inputs import prose


@dataclasses.dataclass
class Report:
    """A page and what a careful reader takes from it; `memory`: card or host; `facts`: exactly what its sentences say of the job."""

    name: str
    text: str
    status: str = "suspected"
    memory: str = "card"
    phase: str = "unknown"
    facts: dict[str, str] = dataclasses.field(default_factory=dict)
    tried: frozenset[str] = frozenset()


REPORTS = [
    Report(
        "a video model, after its command",
        "# full finetune goes OOM\n\nStarted like this:\n```\naccelerate launch --mixed_precision bf16 hv_train.py --dit ckpts/dit.pt --fp8_base\n```\n"
        "I run it on `8*80GB A100` and it is OOM, any other way to save memory?\n",
        facts={"hardware.gpu": "A100 80GB", "hardware.count": "8", "train.finetuning": "full"},
    ),
    Report(
        "a card asked about and cards that were used",
        "# OOM issue\n\nDoes this script fit into an A10, which only has 24GB? I try to finetune on 4 A10 GPUs with a batch size of 1, but I still get an OOM error.\n",
        facts={"hardware.gpu": "A10", "hardware.count": "4", "train.micro_batch_size": "1"},
        tried=frozenset({"lower_micro_batch"}),
    ),
    Report(
        "memory in brackets",
        "# Train OOM\n\nI have 8 A100 (80GB) GPUs.\nI want to do full parameter fine-tuning\n`accelerate launch --config_file zero2.yaml train.py --config full.yaml`\nthis leads to OOM.\n",
        facts={"hardware.gpu": "A100 80GB", "hardware.count": "8", "train.finetuning": "full", "zero.stage": "2"},
    ),
    Report(
        "one long sentence that ends in a question",
        "# Which GPUs do you recommend?\n\nI run into an OOM error with the default setup on 8*A100 with train.sh, could you share what it requires?\n",
        facts={"hardware.gpu": "A100", "hardware.count": "8"},
    ),
    Report(
        "even on four cards",
        "# finetuning setting\n\nDo you freeze what is not attention? Without freezing, my training results in OOM even on 4 A6000 GPUs\n",
        facts={"hardware.gpu": "A6000", "hardware.count": "4"},
    ),
    Report(
        "a blog says that it works",
        "# Finetuning gpt-oss-120b at 8 H100s gets cuda OOM error\n\nI use sft.py with the LoRA config. Your blog says one H100 is enough, but I keep getting OOM. Has anyone done it?\n",
        facts={"hardware.gpu": "H100", "hardware.count": "8", "model.path": "gpt-oss-120b", "train.finetuning": "lora"},
    ),
    Report(
        "two cards fail and one does not",
        "# 用两张4090微调13b的模型出现oom，单卡则不会\n\n单卡没有这个情况，多卡才出现，我有一张卡已经被占了15G，是我没配置好吗？\n",
        facts={"hardware.gpu": "4090", "hardware.count": "2"},
    ),
    Report(
        "fields of a template in Chinese",
        "# 显存不足，多卡微调问题\n\n### 系统信息\n\n- 硬件：单机8卡，每卡11G\n- 运行：按教程跑脚本，batch size 设为 1 依然显存不足\n- 问题：请问应该怎么设置？\n",
        facts={"hardware.count": "8", "parallel.nodes": "1", "train.micro_batch_size": "1"},
        tried=frozenset({"lower_micro_batch"}),
    ),
    Report(
        "everything in one sentence",
        "# oom错误\n\n8b模型究竟用多少张卡比较稳，batch_size调成2，4张80g的A100进行全量参数微调，跑着跑着还是会oom。\n",
        facts={"hardware.gpu": "A100 80GB", "hardware.count": "4", "train.finetuning": "full", "train.micro_batch_size": "2"},
    ),
    Report(
        "another card on which it works",
        "# 全参多卡微调始终报显存溢出\n\n### System Info\n\n- CUDA 12.1\n- 显卡 A40 * 4 = 48G *4\n- ds配置：examples/ds_z3_config.json\n\n### Reproduction\n\n"
        "fp16 和 pure_bf16 都试过，每次都会OOM（在单卡A100 80G上不会OOM）\n",
        facts={"hardware.gpu": "A40", "hardware.count": "4", "train.finetuning": "full", "zero.stage": "3"},
    ),
    Report(
        "host memory that grows",
        "# More RAM is used with every epoch\n\nIt repeats: at the 14th epoch the process is killed, because my CPU RAM is exhausted. I have 8 cores, 30GB CPU RAM.\n\n"
        "I tried a smaller memory bank, still the same.\n",
        memory="host",
        facts={"host.ram": "30 GiB"},
    ),
    Report(
        "host memory in a title",
        "# RAM out of memory and process killed\n\nWhy does RAM usage grow within an epoch and drop after it? In the end it is out of memory. I have 20GB RAM.\n",
        memory="host",
        facts={"host.ram": "20 GiB"},
    ),
    Report(
        "exit code 137 in validation",
        "# [Bug] Getting exit code 137 in validation step while training\n\n### Describe the bug\n\nTraining goes well, but in the validation step the process dies with 137. "
        "I watched the RAM, it seems to run out.\n\nThings that I tried to solve it:\n1. Reducing the batch size.\n2. Fewer workers.\n\nNothing seems to help.\n",
        memory="host",
        phase="eval",
        tried=frozenset({"lower_micro_batch", "fewer_workers"}),
    ),
    Report(
        "a list of settings of GRPO",
        "# GRPO goes out of memory on an instance with 8 cards\n\nHi all, I am stuck.\n\n- GRPO training with the trl trainer\n- vllm in colocate mode\n- Base model Qwen3-0.6B\n- Instance: 8 A10\n"
        "- Sequence length = 20480 , batch size 1 per device\n- Using deepspeed stage 3 (ZeRO3)\n\nIt dies with OutOfMemory in the second backward pass.\n",
        phase="backward",
        facts={
            "hardware.gpu": "A10",
            "hardware.count": "8",
            "model.path": "Qwen3-0.6B",
            "train.stage": "grpo",
            "zero.stage": "3",
            "train.max_seq_len": "20480",
            "train.micro_batch_size": "1",
            "rollout.placement": "colocated",
        },
    ),
    Report(
        "two runs with different numbers of cards",
        "# Is something wrong with the memory of GRPO training?\n\nWith one H20 and 4 rows it does some steps before OOM. With 2 x H20 and 2 rows the OOM comes earlier. I do not know why.\n",
        facts={"hardware.gpu": "H20", "train.stage": "grpo"},
    ),
    Report(
        "the engine while its weights load",
        "# How to train GRPO on 2 GPUs, one for training, one for vllm\n\nI use `Qwen2.5-3B-Instruct` to train GRPO, the device for vllm is always OOM when loading weights. They have 32GB of memory.\n",
        phase="model_load",
        facts={"hardware.count": "2", "model.path": "Qwen2.5-3B-Instruct", "train.stage": "grpo"},
    ),
    Report(
        "a batch of one that exceeds the card",
        "# 全参数微调需要多少显存？\n\n你好。我有两张A100 (40G)。\n但是我跑全参数微调时batchsize=1也会超显存，有没有办法把模型分到两张卡上？\n",
        facts={"hardware.gpu": "A100 40GB", "hardware.count": "2", "train.finetuning": "full", "train.micro_batch_size": "1"},
        tried=frozenset({"lower_micro_batch"}),
    ),
    Report(
        "host memory while the model loads",
        "# 单机多卡训练时内存占用过高\n\n使用8*3090+约400G内存精调CogVLM，发现用8张显卡时内存会在加载参数阶段爆掉。用4张就能正常加载。\n",
        memory="host",
        phase="model_load",
        facts={"hardware.gpu": "3090", "hardware.count": "8", "host.ram": "400 GiB"},
    ),
    Report(
        "killed without a reason",
        "# Training gets killed\n\nAfter a few iterations the process gets killed. I have tried to decrease batch_size (2 already) and nothing solves it. Tesla K40c.\n",
        memory="host",
        facts={"train.micro_batch_size": "2"},
        tried=frozenset({"lower_micro_batch"}),
    ),
    Report(
        "host memory when saving",
        "# 保存模型时 CPU 内存暴涨至 250GB+ 导致 OOM（32B 模型，4 卡训练）\n\n训练本身没有问题，一到保存就这样，请问怎么办？\n",
        memory="host",
        phase="checkpoint_save",
        facts={"hardware.count": "4"},
    ),
    Report(
        "loader processes and offload",
        "# zero3_offload下DataLoader进程fork占用大量内存并OOM\n\n### Bug 描述\n\n参数已经卸载到内存，epoch结束重启DataLoader时内存不足，进程被杀。\n\n触发条件: DeepSpeed ZeRO-3 + torchrun (8 GPU)\n模型: Qwen3-32B\n",
        memory="host",
        facts={"zero.stage": "3", "zero.offload_optimizer": "cpu", "hardware.count": "8", "model.path": "Qwen3-32B"},
    ),
    Report(
        "host and not card",
        "# OOM during LoRA training\n\nHi, the machine quickly gets OOMed (CPU memory OOM, not GPU memory), what might be wrong?\n",
        memory="host",
        facts={"train.finetuning": "lora"},
    ),
    Report(
        "evaluation in the title",
        "# During the first evaluation after training, an OOM (Out of Memory) error occurs.\n\n### System Info\n\n- transformers version: 4.43.3\n- GPU type: NVIDIA TITAN V\n",
        phase="eval",
        facts={"hardware.gpu": "NVIDIA TITAN V"},
    ),
    Report(
        "system memory and cards",
        "# 请问4x4090还需要足够的cpu内存吗\n\n我机器是4个RTX4090 24G，cpu内存只有128G，用示例的命令起不来，会被系统OOM杀进程。\n",
        memory="host",
        facts={"hardware.gpu": "RTX 4090", "hardware.count": "4", "host.ram": "128 GiB"},
    ),
    Report(
        "one line on Ascend",
        "# qwen3 30B没法在8卡910B上训练\n\n参数设置的比示例的还小，但还是一直报OOM\n",
        facts={"hardware.gpu": "910B", "hardware.count": "8"},
    ),
    Report(
        "two machines with Ascend",
        "# 昇腾910B3 两机16卡 lora sft Qwen2-72B-Instruct报OOM\n\n### System Info\n\n- NPU type: Ascend910B3\n- DeepSpeed version: 0.13.2\n\n请问该怎么调？\n",
        facts={
            "hardware.gpu": "910B3",
            "hardware.count": "16",
            "parallel.nodes": "2",
            "train.finetuning": "lora",
            "train.stage": "sft",
            "model.path": "Qwen2-72B-Instruct",
        },
    ),
    Report(
        "all settings in a sentence",
        "# Qwen2.5-3B模型 OOM\n\n### Reproduction\n\n我有四张3090显卡，每张卡24G显存，打算全参数微调，我使用了zero-2，序列长度是512，batch_size为1，为啥显存还不够？\n",
        facts={
            "hardware.gpu": "3090",
            "hardware.count": "4",
            "train.finetuning": "full",
            "zero.stage": "2",
            "train.max_seq_len": "512",
            "train.micro_batch_size": "1",
            "model.path": "Qwen2.5-3B",
        },
    ),
    Report(
        "one sentence in English",
        "# Qwen 3B OOMs on 2 H100s\n\nI get an OOM error trying to train Qwen2.5-3B with PPO on 2 H100s.\n",
        facts={"hardware.gpu": "H100", "hardware.count": "2", "train.stage": "ppo", "model.path": "Qwen2.5-3B"},
    ),
    Report(
        "a server on few cards",
        "# vllm 72b启动失败\n\n### 问题\n\n8张A800，transformers 能跑，但是 vllm 却报错OOM？我的命令没有别的参数。\n",
        facts={"hardware.gpu": "A800", "hardware.count": "8"},
    ),
    Report(
        "the step at which it fails and the release that works",
        "# CUDA OOM error after 50 steps with the new vLLM (no issue in the old one)\n\nThe training runs on a single node with 8 NVIDIA H100 GPUs (80GB HBM3 each). "
        "It uses Qwen2.5-7B-Instruct with GRPO. With the old release the same parameters worked.\n",
        facts={
            "hardware.gpu": "H100 80GB",
            "hardware.count": "8",
            "parallel.nodes": "1",
            "train.stage": "grpo",
            "model.path": "Qwen2.5-7B-Instruct",
        },
    ),
    Report(
        "many machines",
        "# grpo llama3.1 70B 显存OOM\n\n求助呀。9台机器，每台机器是8*A800 80G，用 zero3，micro batch 已经是1了还是不行\n",
        facts={
            "hardware.gpu": "A800 80GB",
            "hardware.count": "72",
            "parallel.nodes": "9",
            "train.stage": "grpo",
            "zero.stage": "3",
            "train.micro_batch_size": "1",
            "model.path": "llama3.1 70B",
        },
        tried=frozenset({"zero3", "lower_micro_batch"}),
    ),
    Report(
        "fields without bullets",
        "# SDXL Dreambooth OOM on 24GB VRAM\n\nI have trained LoRAs without trouble, but the dreambooth script runs out of VRAM on the first step. Any ideas?\n\nResolution: 1024\nBatch size: 1\n",
        facts={"data.image_size": "1024", "train.micro_batch_size": "1"},
    ),
    Report(
        "a card in the title",
        "# SDXL training OOM 5070 Ti\n\nHello, I get OOM when I try to train an SDXL LoRA, even with 512px images. I was able to do it with a 4060 Ti on another trainer.\n",
        facts={"hardware.gpu": "5070 Ti", "train.finetuning": "lora"},
    ),
    Report(
        "resumed from a checkpoint",
        "# 同配置和环境下从检查点继续训练OOM\n\n我采用FSDP在4 x A100 40G上对Qwen2-7B-Instruct进行全参数微调，中断后想从检查点恢复训练，就出现OOM。\n",
        facts={"hardware.gpu": "A100 40GB", "hardware.count": "4", "train.finetuning": "full", "model.path": "Qwen2-7B-Instruct"},
    ),
    Report(
        "a table",
        "# [FSDP1] OOM when resuming: every rank loads the checkpoint on cuda:0\n\n### System Info\n\n| Item | Value |\n| --- | --- |\n| PyTorch | 2.10.0+cu128 |\n"
        "| Hardware | 8 x NVIDIA H200 |\n| RAM | 2 TB |\n\nI can train and save, but the resume does not start.\n",
        facts={"hardware.gpu": "H200", "hardware.count": "8", "host.ram": "2 TiB"},
    ),
    Report(
        "a hang, not a lack of memory",
        "# NCCL hangs cause timeout\n\nMy training of a vqgan model hangs after some hours. It takes only 10% of the GPU memory on each card, thus it is impossible to be an OOM.\n",
        status="none",
    ),
    Report(
        "slow, with enough memory",
        "# Training is very slow on an RTX 3060 12GB\n\nI train an SDXL LoRA with 63 images, it took 15 hours. The card is full to 11 of 12 GB but there was no OOM. Is that normal?\n",
        status="none",
        facts={"hardware.gpu": "RTX 3060", "train.finetuning": "lora"},
    ),
    Report(
        "experiments, no failure",
        "# More experiments (full fine-tuning on 8 x A100 40GB)\n\nThis changes our configuration files so that the fine-tuning runs in a VM with 8 x A100 40GB.\n",
        status="none",
        facts={"hardware.gpu": "A100 40GB", "hardware.count": "8", "train.finetuning": "full"},
    ),
    Report("how much it needs", "# 微调需要多大的显存\n\n你好，请问单卡、多卡微调需要多大的显存？\n", status="none"),
    Report("a wish for handling", "# ENH: handle OOM during model loading\n\nI think the server should not crash then but answer with an error.\n", status="none"),
    Report("whether a card is enough", "# Finetune with A100 40G\n\nCan we use an A100 40G to finetune llama-7B? Is there anyone who tried?\n", status="none", facts={"hardware.gpu": "A100 40GB"}),
]


def _said(diagnosis: diagnose.Diagnosis) -> tuple[dict[str, Value], set[Value]]:
    said = [fact for fact in diagnosis.facts if fact.origin == "said" and not fact.name.startswith("log.")]
    return {fact.name: fact.value for fact in said if fact.name != "report.tried"}, {fact.value for fact in said if fact.name == "report.tried"}


def _same(name: str, value: Value, text: str) -> bool:
    if name == "hardware.gpu":
        return [card.key for card in catalogue.cards_named(str(value))] == [card.key for card in catalogue.cards_named(text)]
    return str(value).lower() == text.lower()


@pytest.mark.parametrize("report", REPORTS, ids=lambda report: report.name)
def test_a_page_says_what_its_reader_takes_from_it(report: Report) -> None:
    diagnosis = diagnose.explain(report.text)
    facts, tried = _said(diagnosis)
    assert diagnosis.verdict.status == report.status
    if report.status == "suspected":
        assert diagnosis.verdict.phase == report.phase
        assert ("card" if diagnosis.verdict.family in ("torch_cuda", "torch_npu") else "host") == report.memory
    wrong = {name: (facts.get(name), text) for name, text in report.facts.items() if not _same(name, facts.get(name), text)}
    assert not wrong
    assert {name: str(value) for name, value in facts.items() if name not in report.facts} == {}
    assert tried == report.tried
