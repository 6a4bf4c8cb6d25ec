"""Whole numbers of a text that may be sides of a tensor."""

from __future__ import annotations

from collected import for_each

from diagnose.catalogue import mentions
from diagnose.parse.facts.text_figures import figures


@for_each(
    "text, side",
    [
        ("batch_size = 64\n", ("batch_size", 64)),
        ('{"height": 768, "width": 512}', ("height", 768)),
        ("$ python main.py --num-points 4096 --k=20\n", ("num_points", 4096)),
        ("img_x, img_y = 256, 342\n", ("img_y", 342)),
        ("parser.add_argument('--emb_dims', type=int, default=1024)\n", ("emb_dims", 1024)),
        ("pre-trained vectors, 300 dimensions\n", ("dimensions", 300)),
        ("self.rnn = nn.LSTM(80, n)\n", ("gates", 4)),
        ("docs = load(50000)\n", ("load", 50000)),
        ("def f(chunk_size=10, n_bins=192): ...\n", ("n_bins", 192)),
    ],
)
def test_a_number_has_a_name(text: str, side: tuple[str, int]) -> None:
    assert side in figures(text).sides


@for_each("text", ["seed = 1337\n", "lr: 0.01\n", "--master_port 29500\n", "epochs=300\n", "cuda:0\n", "pid=6849\n", "v1.2.345\n"])
def test_a_number_that_is_no_side(text: str) -> None:
    assert not figures(text).sides


@for_each(
    "text, shape",
    [
        ("q torch.Size([1, 8, 12000, 64])\n", (1, 8, 12000, 64)),
        ("# x[col] is [13264x1x10]\n", (13264, 1, 10)),
        ("# 756 x 1008 pixels\n", (756, 1008)),
        ("cp.random.uniform(size=1000000*300)\n", (1000000, 300)),
    ],
)
def test_a_shape_that_is_written_out(text: str, shape: tuple[int, ...]) -> None:
    assert shape in figures(text).shapes


@for_each(
    "text, word",
    [
        ("File main_vgg.py", "vgg"),
        ("encoders/resnet_encoders.py", "resnet"),
        ("--wrap OPTDecoderLayer", "opt"),
        ("transformers/models/gptj/modeling_gptj.py", "gptj"),
        ("/home/u/miniconda3/envs/baichuan/lib", "baichuan"),
    ],
)
def test_a_network_is_named(text: str, word: str) -> None:
    assert word in mentions.networks(text)


@for_each("text", ["/opt/app/train.py", "a resnetlike thing", "MyDecoderLayer"])
def test_what_names_no_network(text: str) -> None:
    assert not mentions.networks(text)


def test_a_strange_text_is_read_within_limits() -> None:
    text = "a" * 30000 + "=" * 3000 + "[1,2,3" * 3000 + "add_argument('--" + "x" * 9000 + "\n" * 2000 + "1x" * 9000
    assert len(figures(text).sides) <= 40 and len(figures(text).shapes) <= 24
