"""Redaction: what rules/redactions.yaml says it masks is masked, figures and keys survive, placeholders are consistent."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from collected import for_each
from hypothesis import given, settings
from hypothesis import strategies as st
from redaction import Maker
from samples import SAMPLES

from diagnose import rule_files
from diagnose.diagnosis import Diagnosis
from diagnose.phrases import same
from diagnose.render.parts import redaction
from diagnose.render.parts.redaction import Masker

ENTRIES: list[dict[str, Any]] = rule_files.table("redactions")
MAKER = Maker(1)
MASKS = [(entry["name"], MAKER.expand(example)) for entry in ENTRIES for example in entry["masks"]]
KEEPS = [(entry["name"], MAKER.expand(example)) for entry in ENTRIES for example in entry.get("keeps", ())]


@for_each("name, example", MASKS)
def test_an_example_of_a_secret_is_masked(name: str, example: str) -> None:
    assert Masker()(f"x {example} y") != f"x {example} y"


@for_each("name, example", KEEPS)
def test_an_example_that_is_no_secret_survives(name: str, example: str) -> None:
    assert Masker()(f"x {example} y") == f"x {example} y"


@for_each(
    "line",
    [
        "CUDA out of memory. Tried to allocate 4.64 GiB. GPU 3 has a total capacity of 31.74 GiB of which 1.41 GiB is free.",
        'File "/usr/lib/python3.11/site-packages/torch/nn/functional.py", line 3104, in cross_entropy',
        "cutoff_len: 4096 -> 1536, zero_optimization.stage3_prefetch_bucket_size: 5e8",
        "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True,max_split_size_mb:512",
        "2*(4096-1)*152064*4 = 4,981,616,640 bytes; driver 535.104.05, torch 2.5.1+cu124, CUDA 12.4",
        "Qwen/Qwen2-VL-7B-Instruct on 8 x V100-32GB, rank 3, local_rank: 3, step 0/267 [00:00<?, 12:34:56]",
        "key.not.read (sequence_length), max_tokens: 4096, tokenizer: <|im_end|>, num_tokens=16384",
        "prompt_key: question, data.response_key=answer, reward_fn_key: data_source, sort_key=layer_12, key: RTX6000Ada-48GB",
        "tokens: 1.2M, tokens: 2*4096, tokens: (4, 4096), tokens=4096x8, token_budget: 8192, bytes/token: 11.81",
        "target_modules: ['query', 'key', 'value'], {'key': 'per_device_train_batch_size', 'to': 4}, keys: [q_proj, k_proj]",
        "pad_token: [PAD], bos_token: '<s>', unk_token: <unk>, eos_token_id: 151643, image_token_id=151655",
        "the basic configuration of the bearer, a basic understanding, bearer of bad news, authorization required",
        "forward pass: 1.2s, 2nd pass: step 3, multi_pass=2, bypass: true, compass: north, author: someone2024",
        "listening on 0.0.0.0:8000, torch 2.5.1+cu124, cudnn 9.1.0.70, nvidia-nccl-cu12==2.20.5, driver 535.104.05",
        "api_key=args.api_key, token = os.environ['HF_TOKEN'], password=getpass(), token: str | None = None, key=lambda x: x",
        "--hf_token $HF_TOKEN, password: ${DB_PASSWORD}, api_key: <your key>, token: '***', secret: {{ secrets.KEY }}",
    ],
)
def test_figures_frames_and_keys_survive(line: str) -> None:
    assert Masker()(line) == line


def test_a_report_is_masked_as_each_of_its_texts_alone() -> None:
    """Looking through all texts at once for what has to be tried on each leaves nothing out."""
    texts = [text for _, example in MASKS for text in (example, f"see {example} and\nmore", example.upper())]
    texts += [text for entry in ENTRIES for text in entry.get("keeps", ())] + ["", "n17 of gpu-node-17"]
    alone, together = (Masker([("host", "gpu-node-17")]) for _ in range(2))
    together.expect(texts)
    for text in texts:
        assert together(text) == alone(text)


def test_the_same_secret_gets_the_same_placeholder_everywhere() -> None:
    mask = Masker()
    assert mask("/home/alice/a, /home/bob/b") == "/home/<user-1>/a, /home/<user-2>/b"
    assert mask("/home/bob/c") == "/home/<user-2>/c"


def test_masking_twice_changes_nothing_more() -> None:
    for _, example in MASKS:
        once = Masker()(f"x {example} y")
        assert Masker()(once) == once, example


def test_a_host_that_the_log_names_is_masked_wherever_it_stands() -> None:
    sample = SAMPLES["lookalike"]()
    event = replace(sample.events[0], host="dgx07", exception="worker dgx07 died")
    masked = redaction.mask_diagnosis(replace(sample, events=(event,), verdict=sample.verdict._replace(headline=same("dgx07 ran out"))))
    assert masked.verdict.headline.en == "<host-1> ran out"
    assert masked.events[0].host == "<host-1>"
    assert masked.events[0].exception == "worker <host-1> died"


@for_each("name", SAMPLES)
def test_redaction_changes_no_conclusion(name: str) -> None:
    before: Any = SAMPLES[name]().to_dict()
    after: Any = redaction.mask_diagnosis(SAMPLES[name]()).to_dict()
    for part in ("budgets", "plan", "rejected", "questions", "attributions"):
        assert after[part] == before[part]
    assert [cause["id"] for cause in after["causes"]] == [cause["id"] for cause in before["causes"]]
    assert after["verdict"]["status"] == before["verdict"]["status"]


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=300))
def test_any_text_can_be_masked(text: str) -> None:
    Masker()(text)


def test_a_long_line_is_masked_in_time() -> None:
    """Patterns are bounded: half a megabyte of almost-secrets is no trap."""
    for piece in ("a", "a.", "a-", "ab@", "1.", "x=", "hf_", "://a:"):
        Masker()(piece * (60_000 // len(piece)))


def test_the_documents_that_a_patch_is_made_from_are_not_touched() -> None:
    sample: Diagnosis = SAMPLES["dpo_logits"]()
    assert redaction.mask_diagnosis(sample).documents == sample.documents


def test_a_secret_of_a_config_is_masked_where_it_stands_without_its_name() -> None:
    sample: Diagnosis = SAMPLES["dpo_logits"]()
    secret = MAKER.expand("{alnum:32}")
    document = replace(sample.documents[0], text=f"model: llama\nwandb_key: {secret}\n")
    event = replace(sample.events[0], exception=f"the server refused {secret}")
    masked = redaction.mask_diagnosis(replace(sample, documents=(document,), events=(event,), patch=None))
    assert masked.events[0].exception == "the server refused <secret-1>"
