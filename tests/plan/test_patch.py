"""Knobs to edits to text: what is written means what was wanted, and nothing else of the file moves."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping

import pytest
from collected import for_each
from hypothesis import given, settings
from hypothesis import strategies as st
from sweep import sample

from diagnose.adapters import config_reader
from diagnose.adapters.formats.settings import ConfigSource, Document, Settings
from diagnose.adapters.schema import framework_tables
from diagnose.adapters.schema.table_types import Key
from diagnose.facts import Fact, FactBook, Value, Witness, declared, typed
from diagnose.parse.model.reading import Reading
from diagnose.plan.edits import knob_edits
from diagnose.plan.patch import patching
from diagnose.plan.remedies.remedy import Edit
from diagnose.render.parts import advice_text
from diagnose.units import Version

#: A file of each framework and form, with comments and oddities that must survive.
FILES = {
    "llamafactory.yaml": "### mine\nstage: sft  # kept\nfinetuning_type: lora\n\nper_device_train_batch_size: 2\n"
    "bf16: true\nlearning_rate: 1e-5\n",
    "llamafactory-crlf.yaml": "stage: dpo\r\nfinetuning_type: full # kept\r\nfp16: true\r\n",
    "llamafactory.json": '{"stage": "sft", "finetuning_type": "lora"}',
    "llamafactory.sh": "FORCE_TORCHRUN=1 llamafactory-cli train \\\n  --stage sft \\\n  --finetuning_type lora\necho done\n",
    "llamafactory_v1.yaml": "# mine\nmodel: x/y  # kept\nmodel_class: llm\nmicro_batch_size: 2\npeft_config:\n  name: lora\n  r: 8\n",
    "llamafactory_v1.json": '{"model": "x/y", "train_dataset": "d",\n "dist_config": {"name": "fsdp2"}, "micro_batch_size": 2}',
    "llamafactory_v1.sh": "USE_V1=1 llamafactory-cli dpo --model x/y \\\n  --train_dataset d \\\n  --micro_batch_size 2\n",
    "unsloth.py": "from unsloth import FastLanguageModel\nfrom trl import SFTConfig\nmodel, tok = FastLanguageModel.from_pretrained(\n"
    '    "a/b", max_seq_length = 512,  # kept\n)\nmodel = FastLanguageModel.get_peft_model(model, r = 8)\nargs = SFTConfig(\n'
    '    output_dir = "显存",\n)\n',
    "unsloth.sh": "python unsloth-cli.py --model_name a/b --r 8 \\\n  --max_seq_length 512\n",
    "lightning.yaml": "# mine\ntrainer:\n  accelerator: gpu  # kept\n  devices: 2\n  strategy: deepspeed_stage_2\ndata:\n  batch_size: 4\n",
    "lightning-class.yaml": "trainer:\n  devices: [0, 1]\n  strategy:\n    class_path: lightning.pytorch.strategies.FSDPStrategy\n"
    "    init_args:\n      state_dict_type: full # kept\n  precision: 32-true\n",
    "lightning.py": "import lightning as L\nfrom lightning.pytorch.strategies import DeepSpeedStrategy\n"
    "loader = DataLoader(data, batch_size=4)\ntrainer = L.Trainer(\n    devices=4,  # kept\n    strategy=DeepSpeedStrategy(stage=2),\n)\n",
    "lightning.sh": "python main.py fit --config c.yaml --trainer.devices 4 --trainer.precision bf16-mixed\n",
    "alpaca_lora.sh": "python finetune.py --base_model a/b --data_path d.json --micro_batch_size 4 --cutoff_len 512\n",
    "glm_finetune.yaml": "max_input_length: 512 # kept\nmax_output_length: 512\ntraining_args:\n  output_dir: o\n"
    "  per_device_train_batch_size: 4\npeft_config:\n  peft_type: LORA\n  r: 8\n",
    "gpt_neox.yaml": "# mine\npipe_parallel_size: 0\nnum_layers: 4 # kept\ntrain_micro_batch_size_per_gpu: 4\n"
    "checkpoint_activations: false\n",
    "litgpt.yaml": "checkpoint_dir: a/b # kept\nlora_r: 8\ntrain:\n  micro_batch_size: 1\n  global_batch_size: 8\n",
    "litgpt.sh": "litgpt finetune_lora a/b --precision bf16-true --train.micro_batch_size 1 --devices 2\n",
    "diffusers.sh": "accelerate launch train_text_to_image.py --pretrained_model_name_or_path a/b \\\n"
    "  --resolution 512 --train_batch_size 2\n",
    "kohya.toml": '# mine\nnetwork_module = "networks.lora"  # kept\nnetwork_dim = 8\ntrain_batch_size = 2\n',
    "kohya.sh": "accelerate launch sdxl_train.py --max_bucket_reso 2048 \\\n  --train_batch_size 2\n",
    "axolotl.yaml": "# mine\nbase_model: x/y  # kept\ndatasets:\n  - path: d\n    type: t\nmicro_batch_size: 2\n"
    "sequence_len: 100\nplugins:\n  - a.b.C\n",
    "trl.yaml": "model_name_or_path: x/y\ndataset_name: d # kept\nlora_r: 4\nper_device_train_batch_size: 3",
    "trl.sh": "trl sft --model_name_or_path a/b --dataset_name d --lora_r 3\n",
    "trl.py": 'from trl import SFTConfig, SFTTrainer\nargs = SFTConfig(\n    output_dir="显存",\n    bf16=True,  # kept\n)\n'
    't = SFTTrainer(model="a/b", args=args)\n',
    "trl-oneline.py": "from trl import GRPOConfig\nargs = GRPOConfig(output_dir='o', fp16=True)\npeft = LoraConfig(r=8)\n",
    "transformers.yaml": "output_dir: o\nper_device_train_batch_size: 3\n",
    "transformers.py": 'from transformers import TrainingArguments\nargs = TrainingArguments("o", fp16=True)\n',
    "openrlhf.sh": "set -x\ndeepspeed --module openrlhf.cli.train_sft \\\n   --pretrain a/b \\\n"
    "   --zero_stage 2 \\\n   --gradient_checkpointing\n",
    "openrlhf-dotted.sh": "python -m openrlhf.cli.train_ppo_ray --actor.num_nodes 1 --ds.zero_stage 3\n",
    "deepspeed.json": '{\n  "zero_optimization": {\n    "stage": 3,\n    "overlap_comm": true\n  },\n  "train_batch_size": "auto"\n}\n',
    "deepspeed-oneline.json": '{"zero_optimization":{"stage":3}}',
    "accelerate.yaml": "compute_environment: LOCAL_MACHINE\ndistributed_type: DEEPSPEED\ndeepspeed_config:\n"
    "  zero_stage: 2\n  # kept\n  gradient_clipping: 1.0\n"
    "fsdp_config:\n  fsdp_version: 1\nmixed_precision: bf16\nnum_processes: 2\n",
    "swift.yaml": "model: x/y\ntrain_type: lora\nrlhf_type: dpo\nlearning_rate: 1\n",
    "swift.sh": "NPROC_PER_NODE=2 MAX_PIXELS=1003520 swift sft \\\n    --model x/y \\\n    --tuner_type full \\\n    --deepspeed zero2\n",
    "swift-2.sh": "swift sft --model_id_or_path a/b --sft_type lora --batch_size 2\n",
    "swift_megatron.sh": "NPROC_PER_NODE=8 megatron sft --model a/b \\\n  --tensor_model_parallel_size 2 \\\n  --recompute_granularity selective\n",  # noqa: E501
    "swift_megatron.yaml": "model: a/b\ntensor_model_parallel_size: 2 # kept\nmicro_batch_size: 2\n",
    "megatron.sh": "ARGS=(\n  --num-layers 2 # kept\n  --hidden-size 8\n  --bf16\n)\ntorchrun --nproc_per_node 2 pretrain_gpt.py ${ARGS[@]} \\\n"  # noqa: E501
    "  --micro-batch-size 2 --seq-length 64\n",
    "nemo.sh": "python megatron_gpt_finetuning.py trainer.devices=2 \\\n  trainer.num_nodes=1 \\\n  model.micro_batch_size=1\n",
    "nemo.yaml": "trainer:\n  devices: 2\n  num_nodes: 1\nmodel:\n  micro_batch_size: 1 # kept\n  hidden_size: 64\n",
    "verl.yaml": "actor_rollout_ref:\n  model:\n    path: x/y\n  rollout:\n    n: 2\ntrainer:\n  nnodes: 1\ndata:\n  train_batch_size: 8\n",
    "verl.sh": "python -m verl.trainer.main_ppo \\\n  data.train_batch_size=8 \\\n  actor_rollout_ref.model.path=a/b\n",
    "verl-megatron.sh": "python -m verl.trainer.main_ppo --config-name=ppo_megatron_trainer \\\n  data.train_batch_size=8 \\\n  actor_rollout_ref.model.path=a/b\n",  # noqa: E501
    "verl-sft.sh": "torchrun --nproc_per_node=2 -m verl.trainer.fsdp_sft_trainer \\\n  data.max_length=64 \\\n  'model.partial_pretrain=a/b'\n",  # noqa: E501
    "nemo_rl.yaml": "policy:\n  model_name: a/b # kept\n  train_micro_batch_size: 2\n  dtensor_cfg: {enabled: true}\n  generation:\n"
    "    backend: vllm\ncluster:\n  gpus_per_node: 2\n",
    "nemo_rl.sh": "uv run examples/run_grpo.py \\\n  policy.train_micro_batch_size=2 \\\n  cluster.gpus_per_node=8\n",
    "areal.yaml": "actor:\n  backend: fsdp:d2\n  path: a/b # kept\n  mb_spec: {max_tokens_per_mb: 64}\n"
    "train_dataset:\n  type: rl\n  max_length: 8\n",
    "automodel.yaml": "step_scheduler:\n  global_batch_size: 8\n  local_batch_size: 2 # kept\nmodel:\n"
    "  pretrained_model_name_or_path: a/b\npeft:\n  dim: 8\n",
    "automodel.sh": "automodel recipe.yaml --step_scheduler.local_batch_size 2 \\\n  --distributed.tp_size 2\n",
    "vllm.yaml": "# mine\nmodel: a/b\ngpu-memory-utilization: 0.8 # kept\nmax-model-len: 512\n",
    "vllm.sh": "vllm serve a/b --max-model-len 512 \\\n  --tensor-parallel-size 2\n",
    "sglang.yaml": "# mine\nmodel-path: a/b\nmem-fraction-static: 0.8 # kept\ncontext-length: 512\n",
    "sglang.sh": "python3 -m sglang.launch_server --model-path a/b --mem-fraction-static 0.8 \\\n  --tp-size 2\n",
    "lmdeploy.sh": "lmdeploy serve api_server a/b --session-len 512 \\\n  --tp 2\n",
    "llamacpp.sh": "llama-server -m a.gguf --ctx-size 512 \\\n  --parallel 2\n",
    "ultralytics.py": "from ultralytics import YOLO\nmodel = YOLO('a.pt')\n"
    "model.train(\n    data='d.yaml',  # kept\n    imgsz=1280,\n    batch=8,\n)\n",
    "ultralytics.yaml": "imgsz: 1280\nbatch: 8 # kept\nclose_mosaic: 10\n",
    "ultralytics.sh": "yolo detect train data=d.yaml \\\n  imgsz=1280 batch=8\n",
    "yolov5.sh": "python train.py --img 1280 --batch-size 8 \\\n  --data d.yaml --weights a.pt\n",
    "nnunet.json": '{"configurations": {"3d_fullres": {"batch_size": 4, "patch_size": [64, 64, 64]}}}',
    "musubi.sh": "accelerate launch wan_train_network.py --dit a.safetensors --network_module networks.lora_wan \\\n  --network_dim 8\n",
    "ai_toolkit.yaml": "job: extension # kept\nconfig:\n  process:\n    - type: sd_trainer\n      network: {type: lora, linear: 8}\n"
    "      train:\n        batch_size: 2 # mine\n        dtype: bf16\n      model:\n        name_or_path: a/b\n",
    "onetrainer.json": '{"training_method": "LORA", "base_model_name": "a/b",\n "batch_size": 2, "lora_rank": 8}',
    "prime_rl.toml": "# mine\nbatch_size = 64\nmicro_batch_size = 2 # kept\nrollouts_per_example = 8\nseq_len = 4096\n",
    "prime_rl-rl.toml": 'seq_len = 4096\n\n[trainer.optim]\ntype = "adamw" # kept\n\n[orchestrator]\nbatch_size = 64\n',
    "prime_rl-train.toml": '[model]\nname = "a/b" # kept\n\n[model.lora]\nrank = 8\n\n[optim]\nlr = 1e-5\n',
    "trlx.yml": "train:\n  seq_length: 512 # kept\n  batch_size: 8\nmethod:\n  num_rollouts: 64\n  chunk_size: 32\n",
    "trlx.py": "from trlx.data.configs import TRLConfig, TrainConfig\nconfig = TRLConfig(\n"
    "    train=TrainConfig(seq_length=512, batch_size=8),\n)\n",
    "simpletuner.json": '{"model_family": "flux", "model_type": "lora", "train_batch_size": 2,\n "gradient_checkpointing": false}',
    "lerobot.sh": "lerobot-train --policy.type=pi05 --dataset.repo_id=a/b \\\n  --batch_size=8 --policy.dtype=float32\n",
    "open_clip.sh": "torchrun --nproc_per_node 2 -m open_clip_train.main --train-data a.csv \\\n  --batch-size 64 --precision amp\n",
    "timm.sh": "python pytorch-image-models/train.py --data-dir d --model convnext_small \\\n  --batch-size 64\n",
    "maxtext.yml": "# mine\nper_device_batch_size: 8 # kept\nmax_target_length: 4096\nici_fsdp_parallelism: -1\n",
    "mmdet.sh": "python mmdetection/tools/train.py c.py --cfg-options train_dataloader.batch_size=2 \\\n  train_dataloader.num_workers=2\n",
    "xtuner.py": "from xtuner.model import SupervisedFinetune\nmax_length = 2048  # kept\nmodel = dict(\n    type=SupervisedFinetune,\n"
    "    llm=dict(type=AutoModelForCausalLM.from_pretrained, pretrained_model_name_or_path='a/b'))\n"
    "train_dataset = dict(max_length=max_length)\ntrain_dataloader = dict(batch_size=2, dataset=train_dataset)\n"
    "optim_wrapper = dict(type=AmpOptimWrapper, dtype='float16')\n",
    "xtuner.sh": "NPROC_PER_NODE=8 xtuner train internlm2_chat_7b_qlora_oasst1_e3 --deepspeed deepspeed_zero3\n",
    "xtuner_v1.py": "from xtuner.v1.train import TrainerConfig\nfsdp = FSDPConfig(recompute_ratio=0.5)  # kept\ntrainer = TrainerConfig(\n"
    "    load_from='a/b', model_cfg=Qwen3Dense8BConfig(), fsdp_cfg=fsdp,\n    dataloader_cfg=DataloaderConfig(pack_max_length=64),\n)\n",
    "xtuner_v1.sh": "torchrun --nproc-per-node 2 "
    "xtuner/v1/train/cli/sft.py --load-from a/b --chat_template qwen3 \\\n  --fsdp-config.cpu-offload\n",
    "easyr1.sh": "python3 -m verl.trainer.main config=c.yaml \\\n  worker.actor.model.model_path=a/b \\\n  worker.rollout.n=4\n",
    "easyr1.yaml": "worker:\n  actor:\n    model: {model_path: a/b}\n    micro_batch_size_per_device_for_update: 2 # kept\n",
    "llm_foundry.yaml": "max_seq_len: 2048 # kept\nglobal_train_batch_size: 64\ndevice_train_microbatch_size: 4\nfsdp_config:\n"
    "  sharding_strategy: FULL_SHARD\n",
    "diffsynth.sh": "accelerate launch "
    "examples/wanvideo/model_training/train.py --dataset_base_path d --lora_base_model dit \\\n  --num_frames 49\n",
    "diffusion_pipe.toml": "micro_batch_size_per_gpu = 2 # kept\npipeline_stages = 1\n[model]\ntype = 'wan'\n[optimizer]\ntype = 'sgd'\n",
    "colossalai.sh": "colossalai run --nproc_per_node 2 train_sft.py --pretrain a/b --plugin zero2 \\\n  --batch_size 4\n",
    "f5_tts.sh": "python src/f5_tts/train/finetune_cli.py --exp_name F5TTS_v1_Base \\\n  --batch_size_per_gpu 3200\n",
    "levanter.yaml": "model:\n  type: llama\n  seq_len: 512 # kept\ntrainer:\n  mp: p=f32,c=bfloat16\n  train_batch_size: 64\n",
    "oumi.yaml": "model:\n  model_name: a/b # kept\ntraining:\n  per_device_train_batch_size: 2\npeft:\n  lora_r: 8\n",
    "paddlenlp.yaml": "model_name_or_path: a/b # kept\nper_device_train_batch_size: 2\nsharding: stage1\nunified_checkpoint: true\n",
    "espnet.sh": "python3 -m espnet2.bin.asr_train --config c.yaml --batch_bins 8000000 \\\n  --accum_grad 4\n",
    "icefall.sh": "python3 zipformer/train.py --exp-dir e --max-duration 600 \\\n  --world-size 2\n",
    "mlx_lm.yaml": "model: a/b # kept\nnum_layers: 8\nlora_parameters: {rank: 8}\nbatch_size: 4\n",
    "openpi.sh": "uv run scripts/train.py pi0_libero --exp-name=a --overwrite \\\n  --batch-size 16\n",
    "detectron2.yaml": "SOLVER:\n  IMS_PER_BATCH: 8 # kept\nINPUT:\n  MAX_SIZE_TRAIN: 1333\n",
    "tgi.sh": "text-generation-launcher --model-id a/b \\\n  --num-shard 2\n",
    "slime.sh": "python3 train.py --hf-checkpoint a/b --rollout-batch-size 2 \\\n  --rollout-max-response-len 64\n",
    "torchtune.yaml": "model:\n  _component_: torchtune.models.llama3.llama3_8b\n"
    "batch_size: 2\noptimizer:\n  _component_: torch.optim.AdamW\n",
    "torchtune.sh": "tune run --nproc_per_node 2 lora_finetune_distributed --config a.yaml \\\n  batch_size=2 \\\n  dataset.packed=True\n",
    "torchtitan.toml": "# mine\n[model]\nname = 'llama3' # kept\nflavor = '8B'\n\n[training]\nlocal_batch_size = 2\n\n"
    '[activation_checkpoint]\nmode = "none"\n',
    "torchtitan-crlf.toml": "[training]\r\nseq_len = 2 # kept\r\n[compile]\r\n",
    "torchtitan.sh": "torchrun --nproc_per_node=2 -m torchtitan.train --job.config_file a.toml \\\n  --training.seq_len 8\n",
}


def read(*files: tuple[str, str]) -> Settings:
    return config_reader.read([ConfigSource(name, text.encode()) for name, text in files], Reading(), FactBook())


def samples(key: Key) -> Iterator[Value]:
    """Values that the key can be asked for."""
    entry = declared(key.knob)
    assert entry is not None
    words = {"count": ["4"], "ratio": ["0.5"], "switch": ["enabled", "disabled"], "word": list(entry.words), "text": ["some/thing"]}.get(
        entry.kind, []
    )
    means = [word for meaning in (key.values.values() if key.values else words) for word in (words if meaning == "same" else [meaning])]
    for word in dict.fromkeys(word for word in means if word not in ("nothing", "unknown")):
        yield word if entry.kind in ("word", "text") else typed(key.knob, word)


def wanted(settings_: Settings) -> Iterator[tuple[str, Value]]:
    for document in settings_.documents:
        for key in framework_tables.table(document.framework).keys:
            if key.key and not key.read_only:
                yield from ((key.knob, value) for value in samples(key))


def untouched(old: str, new: str, edits: tuple[Edit, ...]) -> bool:
    """Does every line of the old text that no edit changes stand in the new one, in order?"""
    changed = sum(edit.frm is not None for edit in edits)
    lines = difflib.SequenceMatcher(None, old.splitlines(keepends=True), new.splitlines(keepends=True), autojunk=False)
    gone = sum(j - i for tag, i, j, _, _ in lines.get_opcodes() if tag in ("replace", "delete"))
    neighbours = len(edits) - changed  # a line gets a comma, a backslash or an argument where a key is added beside it
    return gone <= changed + neighbours


@for_each("name", FILES)
def test_every_knob_that_a_table_can_write_is_read_back(name: str) -> None:
    """For every framework, form, knob and value: the patched file means what was asked, and keeps everything else."""
    text = FILES[name]
    told = read((name, text))
    book = FactBook(told.facts)
    made = 0
    for knob, value in sample(list(wanted(told)), 20):
        edits = knob_edits.edits(told.documents, book, {knob: value})
        if edits is None:
            continue
        new = patching.texts(told.documents, edits)[name] if edits else text
        again = read((name, new))
        if {fact.value for fact in again.facts if fact.name == "config.ignored_key"} & {edit.key for edit in edits}:
            continue  # the framework has the key and does not read it here
        assert FactBook(again.facts).value(knob) == value, (knob, value, edits, new)
        assert untouched(text, new, edits), (knob, value, new)
        assert ("\r\n" in text) == ("\r\n" in new) and (text.count("\r\n") != text.count("\n") or new.count("\r\n") == new.count("\n"))
        assert all(f"{comment}" in new for comment in ("# kept", "显存") if comment in text)
        made += 1
    writable = {
        key.knob for document in told.documents for key in framework_tables.table(document.framework).keys if key.key and not key.read_only
    }
    assert made > min(5, len(writable) // 2), name


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["learning_rate", "save_steps", "warmup_ratio", "run_name"]),
            st.sampled_from(["1", '"a: b"', "'x'  # c", "2e-5"]),
        ),
        max_size=4,
    ),
    st.integers(1, 9),
)
def test_neighbours_do_not_matter(lines: list[tuple[str, str]], value: int) -> None:
    before = "".join(f"{key}: {text}\n" for key, text in lines)
    text = f"{before}stage: sft\ncutoff_len: 77   # mine\nfinetuning_type: lora\n"
    told = read(("f.yaml", text))
    edits = knob_edits.edits(told.documents, FactBook(told.facts), {"train.max_seq_len": value})
    assert edits is not None
    assert patching.apply(told.documents[0], edits) == text.replace("77", str(value))


def edited(
    files: Mapping[str, str], changes: Mapping[str, Value], versions: Mapping[str, str] | None = None
) -> tuple[tuple[Edit, ...] | None, tuple[Document, ...]]:
    told = read(*files.items())
    book = FactBook(told.facts).learn(
        Fact(f"version.{name}", Version(text), "log", Witness("log")) for name, text in (versions or {}).items()
    )
    return knob_edits.edits(told.documents, book, changes), told.documents


def patched(files: Mapping[str, str], changes: Mapping[str, Value], versions: Mapping[str, str] | None = None) -> str:
    edits, documents = edited(files, changes, versions)
    assert edits
    return patching.apply(next(document for document in documents if document.name == edits[0].target), edits)


def test_a_kernel_that_needs_companions_brings_them_all_and_keeps_the_plugins() -> None:
    new = patched({"c.yaml": FILES["axolotl.yaml"]}, {"train.loss_kernel": "liger"}, {"axolotl": "0.6.0"})
    assert "plugins:\n  - a.b.C\n  - axolotl.integrations.liger.LigerPlugin\n" in new
    assert all(
        f"{key}: true\n" in new for key in ("liger_rope", "liger_rms_norm", "liger_glu_activation", "liger_fused_linear_cross_entropy")
    )


def test_the_companion_is_the_one_of_the_release() -> None:
    assert "liger_swiglu" in patched({"c.yaml": FILES["axolotl.yaml"]}, {"train.loss_kernel": "liger"}, {"axolotl": "0.5.2"})


def test_checkpointing_of_a_script_brings_its_keyword_arguments() -> None:
    new = patched({"t.py": FILES["trl.py"]}, {"train.gradient_checkpointing": "enabled"}, {"trl": "0.17.0"})
    assert '    gradient_checkpointing=True,\n    gradient_checkpointing_kwargs={"use_reentrant": False},' in new


def test_a_new_precision_switches_the_old_one_off() -> None:
    assert (
        patched({"c.yaml": "stage: sft\nfinetuning_type: full\nbf16: true\n"}, {"train.precision": "fp16"})
        == "stage: sft\nfinetuning_type: full\nbf16: false\nfp16: true\n"
    )


def test_the_second_release_of_swift_takes_its_precision_from_dtype_alone() -> None:
    script = "swift sft --model_id_or_path a/b --sft_type lora --batch_size 2 --dtype AUTO\n"  # which is bf16
    assert patched({"run.sh": script}, {"train.precision": "fp16"}) == script.replace("AUTO", "fp16")


def test_offload_is_edited_in_the_given_file_else_another_stock_file_is_named() -> None:
    main = "stage: sft\nfinetuning_type: full\ndeepspeed: examples/ds_z3_config.json\n"
    given_, _ = edited(
        {"c.yaml": main, "examples/ds_z3_config.json": '{"zero_optimization": {"stage": 3}}'}, {"zero.offload_optimizer": "cpu"}
    )
    named, _ = edited({"c.yaml": main}, {"zero.offload_optimizer": "cpu"})
    unknown, _ = edited({"c.yaml": main.replace("ds_z3_config", "mine")}, {"zero.offload_optimizer": "cpu"})
    assert given_ and {edit.target for edit in given_} == {"examples/ds_z3_config.json"}
    assert named == (Edit("c.yaml", "deepspeed", "examples/ds_z3_config.json", "examples/ds_z3_offload_config.json"),)
    assert unknown and (unknown[0].target, unknown[0].key) == ("examples/mine.json", "zero_optimization.offload_optimizer.device")


def test_a_bucket_that_hugging_face_would_size_itself_becomes_auto() -> None:
    files = {
        "c.yaml": "stage: sft\nfinetuning_type: full\nmodel_name_or_path: Qwen/Qwen2-VL-7B-Instruct\ndeepspeed: d.json\n",
        "d.json": '{"zero_optimization": {"stage": 3, "reduce_bucket_size": 5e8}}',
    }
    assert '"reduce_bucket_size": "auto"' in patched(files, {"zero.reduce_bucket": 3584 * 3584})


def test_options_follow_the_dialect_of_the_script() -> None:
    assert "--adam_offload \\\n" in patched({"r.sh": FILES["openrlhf.sh"]}, {"zero.offload_optimizer": "cpu"})
    assert " --ds.adam_offload" in patched({"r.sh": FILES["openrlhf-dotted.sh"]}, {"zero.offload_optimizer": "cpu"})


@pytest.mark.parametrize(
    "command",
    ["lmdeploy serve api_server a/b --tp 2", "python -m sglang.launch_server --tp 2 --port 1"],
)
def test_engines_get_dashes_where_no_option_shows_the_dialect(command: str) -> None:
    """Their own parsers take nothing else, and an argument without a name is no option."""
    written = patched({"run.sh": command + "\n"}, {"rollout.max_num_seqs": 8})
    assert " --max-batch-size 8" in written or " --max-running-requests 8" in written


def test_an_option_of_a_script_of_ones_own_is_changed_where_it_stands() -> None:
    """The Trainer has no key for the length: the script's is changed, none is added, and no call's keyword becomes an option."""
    command = "torchrun --nproc_per_node 8 train/sft.py --per_device_train_batch_size 1 --bf16 true"
    assert f"{command} --max_seq_length 2560" in patched({"r.sh": f"{command} --max_seq_length 32768\n"}, {"train.max_seq_len": 2560})
    assert launched(f"{command}\n", "train.max_seq_len", 2560) is None


def test_an_override_of_omegaconf_has_no_dashes() -> None:
    """Its recipe is named by an option, and is the only word of the command that has them."""
    command = "tune run full_finetune_single_device --config llama3/8B_full_single_device\n"
    assert " tokenizer.max_seq_len=2048" in patched({"run.sh": command}, {"train.max_seq_len": 2048})


def test_a_switch_is_taken_out_with_its_line_and_backslash() -> None:
    assert patched({"r.sh": FILES["openrlhf.sh"]}, {"train.gradient_checkpointing": "disabled"}).endswith("   --zero_stage 2\n")


def test_an_option_without_a_value_is_shown_as_it_is_written() -> None:
    """argparse's store_true takes no word: what is read on the screen is typed as it stands."""
    command = "accelerate launch train_text_to_image_lora.py --pretrained_model_name_or_path a/b --resolution 512 --train_batch_size 2\n"
    edits, documents = edited({"run.sh": command}, {"train.gradient_checkpointing": "enabled"})
    assert edits
    assert advice_text.edit(edits[0], "en") == "add --gradient_checkpointing"
    assert " --gradient_checkpointing " in patching.texts(documents, edits)["run.sh"].replace("\n", " ")


def launched(command: str, knob: str, value: Value) -> str | None:
    """The command line after the knob was turned; None where the launcher cannot be told by one option."""
    edits, documents = edited({"run.sh": command}, {knob: value})
    return patching.texts(documents, edits)["run.sh"] if edits else None


@for_each("knob", ["parallel.tensor", "parallel.context", "parallel.pipeline", "parallel.expert"])
def test_accelerate_is_not_told_a_size_without_its_switch(knob: str) -> None:
    """Sizes of Megatron and of the parallelism config mean nothing alone, and must multiply to the processes."""
    assert (
        launched(
            "accelerate launch --use_fsdp --num_processes 8 sft.py --model_name_or_path a/b --per_device_train_batch_size 4\n", knob, 2
        )
        is None
    )


def test_an_option_of_one_engine_is_not_given_to_another() -> None:
    """--zero_stage beside --use_fsdp is ignored, --fsdp_* beside --use_deepspeed as well; an option stands before the script's name."""
    assert launched("accelerate launch --use_fsdp train.py\n", "zero.stage", 3) is None
    assert launched("accelerate launch --use_deepspeed train.py\n", "fsdp.offload", True) is None
    assert launched("accelerate launch --use_deepspeed train.py --x 1\n", "zero.stage", 3) == (
        "accelerate launch --use_deepspeed --zero_stage 3 train.py --x 1\n"
    )


def test_a_block_that_is_one_word_of_json_has_no_options_inside() -> None:
    assert "fsdp_config." not in (
        launched("accelerate launch sft.py --model_name_or_path a/b --fsdp full_shard\n", "fsdp.offload", True) or ""
    )


def test_cards_per_node_are_the_cards_over_the_nodes() -> None:
    text = "python -m openrlhf.cli.train_ppo_ray --actor_num_nodes 2 --actor_num_gpus_per_node 4 --zero_stage 3\n"
    assert "--actor_num_gpus_per_node 8 " in patched({"r.sh": text}, {"actor.gpus": 16})
    assert edited({"r.sh": text}, {"actor.gpus": 9})[0] is None


def test_a_knob_without_a_key_has_no_edit() -> None:
    told = read(("c.yaml", FILES["axolotl.yaml"]))
    changes: dict[str, Value] = {"rollout.logprob_batch": 4}
    assert knob_edits.edits(told.documents, FactBook(told.facts), changes) is None


def test_a_misspelt_key_can_be_renamed_in_place() -> None:
    text = "base_model: a\nsequence_length: 2048  # mine\nmicro_batch_size: 1\n"
    document = read(("c.yaml", text)).documents[0]
    assert patching.apply(document, [Edit("c.yaml", "sequence_length", "2048", "2048", renamed="sequence_len")]) == text.replace(
        "length", "len"
    )


def test_keys_can_be_removed_from_every_form() -> None:
    for name, key in (
        ("llamafactory.yaml", "bf16"),
        ("deepspeed.json", "zero_optimization.overlap_comm"),
        ("deepspeed.json", "train_batch_size"),
        ("trl.py", "bf16"),
        ("llamafactory.sh", "--finetuning_type"),
    ):
        document = read((name, FILES[name])).documents[0]
        new = patching.apply(document, [Edit(name, key, "x", None)])
        again = read((name, new))
        assert not [notice for notice in again.notices if notice.level == "error"], new
        assert key.rpartition(".")[2] not in new, new


def test_the_diff_is_one_unified_diff_of_the_given_files_only() -> None:
    files = {"run.sh": "accelerate launch --num_processes 4 t.py\n", "t.py": FILES["trl.py"]}
    told = read(*files.items())
    edits = (Edit("t.py", "bf16", "True", "False"), Edit("run.sh", "--num_processes", "4", "2"), Edit("elsewhere.json", "a", None, "1"))
    text = patching.diff(told.documents, edits)
    assert [line for line in text.splitlines() if line.startswith(("---", "+++"))] == [
        "--- a/t.py",
        "+++ b/t.py",
        "--- a/run.sh",
        "+++ b/run.sh",
    ]
    assert "+accelerate launch --num_processes 2 t.py" in text
    no_end = Document(
        "x.yaml", "llamafactory", "yaml", "stage: sft", read(("x.yaml", "stage: sft\nfinetuning_type: lora")).documents[0].entries[:1]
    )
    assert "\\ No newline at end of file" in patching.diff([no_end], [Edit("x.yaml", "stage", "sft", "dpo")])


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("SFTConfig(output_dir='o')", 'accelerator_config={"gradient_accumulation_kwargs": {"sync_each_batch": True}}'),
        (
            "SFTConfig(output_dir='o', accelerator_config={'split_batches': False})",
            '"gradient_accumulation_kwargs": {"sync_each_batch": True}',
        ),
        (
            "SFTConfig(output_dir='o', accelerator_config={'gradient_accumulation_kwargs': {'adjust_scheduler': True}})",
            "{'adjust_scheduler': True, \"sync_each_batch\": True}",
        ),
    ],
)
def test_a_dotted_key_becomes_dicts_in_a_script(script: str, expected: str) -> None:
    """However deep the key, and however much of its dicts is there: what is written is Python and means the key."""
    text = f"from trl import SFTConfig\nargs = {script}\n"
    read = config_reader.read([ConfigSource("train.py", text.encode())], Reading(), FactBook())
    document = next(each for each in read.documents if each.name == "train.py")
    new = patching.apply(document, [Edit("train.py", "accelerator_config.gradient_accumulation_kwargs.sync_each_batch", None, "True")])
    assert expected in new, new
    compile(new, "train.py", "exec")


def test_a_block_of_a_launchers_file_is_no_argument_of_its_call() -> None:
    """`Accelerator(...)` takes no deepspeed_config: the key stands in accelerate's own file, which was not given."""
    script = "from accelerate import Accelerator\naccelerator = Accelerator(mixed_precision='fp16', gradient_accumulation_steps=4)\n"
    found = config_reader.read([ConfigSource("train.py", script.encode())], Reading(), FactBook())
    assert not knob_edits.edits(found.documents, FactBook(found.facts), {"zero.stage": 3})


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("a.yaml", "# mine\nstage: sft\n# above\nbf16: true  # about bf16\nfp16: true\n", "# mine\nstage: sft\n# above\nfp16: true\n"),
        (
            "kohya.toml",
            'network_module = "networks.lora"\n# above\nbf16 = true # about bf16\ntrain_batch_size = 2\n',
            'network_module = "networks.lora"\n# above\ntrain_batch_size = 2\n',
        ),
    ],
)
def test_a_removed_key_takes_the_comment_at_the_end_of_its_line(name: str, text: str, expected: str) -> None:
    """Left behind it would stand beside a key that it says nothing about; comments above and beside several keys stay."""
    document = read((name, text)).documents[0]
    entry = next(each for each in document.entries if each.key.endswith("bf16"))
    assert patching.apply(document, [Edit(name, entry.key, "true", None)]) == expected
