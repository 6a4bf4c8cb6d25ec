"""A model is known by its name wherever that stands; of one that is in no catalogue the name tells the size."""

from __future__ import annotations

import json

from collected import for_each

from diagnose import catalogue
from diagnose.facts import FactBook
from diagnose.pipeline import check, explain

OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.50 GiB. GPU 0 has a total capacity of 79.10 GiB of which 1.20 GiB is "
    "free. Including non-PyTorch memory, this process has 77.90 GiB memory in use. Of the allocated memory 75.00 GiB is allocated by "
    "PyTorch, and 1.80 GiB is reserved by PyTorch but unallocated.\n"
)
FRAME = 'Traceback (most recent call last):\n  File "{}", line 700, in forward\n    x = self.layer(x)\n'
CODE = "/root/.cache/huggingface/modules/transformers_modules/"


@for_each(
    "path, wanted",
    [
        ("/data/Qwen.Qwen2.5-VL-7B-Instruct", "Qwen/Qwen2.5-VL-7B-Instruct"),
        ("/nas/mistralai_Mistral-7B-v0.1", "mistralai/Mistral-7B-v0.1"),
        ("/mnt/qwen14B-chat", "Qwen/Qwen-14B"),
        ("/models/mistral-7b-instruct-v0.2.Q4_K_M.gguf", "mistralai/Mistral-7B-v0.1"),
        ("Meta Llama 3.1 8B Instruct", "meta-llama/Meta-Llama-3-8B"),
        ("Qwen_hyphen_14B_hyphen_Chat", "Qwen/Qwen-14B"),
        ("/runs/Qwen2.5-7B-Instruct/my-weights", "Qwen/Qwen2.5-7B"),
        ("qwen2.5-vl-32-instruct", "Qwen/Qwen2.5-VL-32B-Instruct"),
        ("google/gemma-2-it", None),  # the release, not a size without its b
        ("/data/my-weights", None),
    ],
)
def test_a_path_names_a_model(path: str, wanted: str | None) -> None:
    model = catalogue.model(path)
    assert (model and model.id) == (wanted and catalogue.model(wanted).id)  # type: ignore[union-attr]


@for_each(
    "name, billions",
    [
        ("acme/Foo-7B", (6.51, 7, 8.56)),
        ("x/Bar-100B-A10B", (93, 100, 109)),
        ("/w/foo14B-chat", (13.02, 14, 16.12)),
        ("x/mix-8x7b", (36.4, 47.6, 56)),
        ("x/opt-like-350m", (0.3255, 0.35, 0.4655)),
        ("gemma-like-E4B", None),
        ("resnet50", None),
        ("v2.5", None),
    ],
)
def test_a_name_tells_the_size_of_an_unknown_model(name: str, billions: tuple[float, float, float] | None) -> None:
    params = catalogue.params_of_name(name)
    assert (params and tuple(round(count / 1e9, 4) for count in params)) == billions


@for_each(
    "log, fact, wanted",
    [
        (FRAME.format("/opt/site-packages/transformers/models/qwen2_5_vl/modeling_qwen2_5_vl.py"), "model.family", "qwen2_5_vl"),
        (FRAME.format("/opt/dist-packages/vllm/model_executor/models/qwen2.py"), "model.family", "qwen2"),
        (FRAME.format(CODE + "Qwen-14B-Chat/modeling_qwen.py"), "model.id", "Qwen/Qwen-14B"),
        (FRAME.format(CODE + "own/modeling_own.py"), "model.path", None),
        ("Some weights of X were not initialized from the model checkpoint at meta-llama/Llama-2-13b-hf and are new\n", "model.layers", 40),
        ("Model google/gemma-2-9b-it loaded\n", "model.layers", 42),
        ("google/gemma-2-9b-it is judged by Qwen/Qwen2.5-7B-Instruct\n", "model.path", None),
        ("print_info: general.name     = DeepSeek R1 Distill Qwen 32B\n", "model.id", "Qwen/Qwen2.5-32B"),
    ],
)
def test_a_log_names_a_model(log: str, fact: str, wanted: object) -> None:
    assert FactBook(explain(log + OOM).facts).value(fact) == wanted


CONFIG = "model_name: acme-ai/Foo-Chat-7B\nlr: 1.0e-4\nepochs: 3\n"


def test_a_model_that_is_not_in_the_catalogue_is_no_unknown_model() -> None:
    diagnosis = check([CONFIG])
    (notice,) = [notice for notice in diagnosis.notices if notice.code == "model.unlisted"]
    assert "acme-ai/Foo-Chat-7B is the model" in notice.message.en and "6.51 to 8.56 billion" in notice.message.en
    (ledger, *_) = diagnosis.ledgers
    weights = next(term.size for moment in ledger.moments for term in moment.terms if term.key == "weights_whole")
    assert weights.low < weights.bytes < weights.high and not ledger.complete and "model.shape" in ledger.unknown


def test_a_family_that_nobody_knows_is_told() -> None:
    dimensions = {"hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16, "num_attention_heads": 32, "vocab_size": 65536}
    told = [
        [
            notice.message
            for notice in check([CONFIG], model=json.dumps({"model_type": name, **dimensions})).notices
            if notice.code == "model.family"
        ]
        for name in ("zorblax", "llama", "gemma3_text")
    ]
    assert [len(messages) for messages in told] == [1, 0, 0]
    assert "zorblax" in told[0][0].en and "zorblax" in told[0][0].zh


def test_a_size_that_only_a_name_tells_is_not_estimated_from_where_the_log_does_not_bear_it_out() -> None:
    diagnosis = explain(OOM, configs=[CONFIG])
    assert not any(moment.terms for ledger in diagnosis.ledgers for moment in ledger.moments)
