"""Tensors whose shape a script tells by its own figures."""

from __future__ import annotations

from collected import for_each

from diagnose.adapters.python.script_tensors import tensors
from diagnose.budget.attribution.told_by_log import SUPPOSED


def shapes(text: str) -> list[tuple[str, tuple[int, ...], int]]:
    return [(made.name, made.shape, made.width) for made in tensors(text)]


@for_each(
    "text, made",
    [
        ("x = torch.rand(1000, 30)\ny = torch.rand(2000, 30)\nd = torch.cdist(x, y)\n", ("cdist", (1000, 2000), 4)),
        ("a = torch.randn(8, 500, 1).half()\nb = torch.randn(8, 1, 700).half()\nc = torch.bmm(a, b)\n", ("bmm", (8, 500, 700), 2)),
        ("w = np.zeros((400, 30))\ng = w @ w.T\n", ("matmul", (400, 400), 8)),
        ("N, D = 300, 64\nx = torch.zeros(N, D)\nd = x[:, None] - x[None]\n", ("result", (300, 300, 64), 4)),
        ("x = torch.zeros(300, 64)\ny = x.unsqueeze(1) * x\n", ("result", (300, 300, 64), 4)),
        ("p = np.ones((2**20,), np.float32)\nq = jnp.asarray(p)\n", ("array", (1 << 20,), 4)),
        ("x = jnp.zeros(5000)\ni = jnp.arange(x.size)\njax.vmap(f)(i)\n", ("vmap", (5000, 5000), 4)),
        ("a = np.zeros((90, 7))\nb = np.zeros((7, 80))\nc = np.einsum('ij,jk->ik', a, b)\n", ("einsum", (90, 80), 8)),
        (
            "c = nn.Conv3d(64, 32, kernel_size=3, padding=1).half()\nx = torch.rand((1, 64, 10, 20, 30)).half()\ny = c(x)\n",
            ("columns of a convolution", (64, 27, 10, 20, 30), 2),
        ),
        ("c = nn.Conv2d(16, 8, (3, 5), stride=2)\ny = c(torch.rand(4, 16, 101, 101))\n", ("convolution", (4, 8, 50, 49), 4)),
        ("head = nn.Linear(4096, 128256)\n", ("linear weight", (4096, 128256), 4)),
        ("batch_size = 64\nblock_size = 256\nn_embd = 384\n", (f"hidden states{SUPPOSED}", (64, 256, 384), 0)),
        ("m = Net(dim=512, heads=8, max_seq_len=2048, batch_size=4)\n", (f"attention_scores{SUPPOSED}", (4, 8, 2048, 2048), 0)),
    ],
)
def test_what_a_script_makes(text: str, made: tuple[str, tuple[int, ...], int]) -> None:
    assert made in shapes(text)


@for_each(
    "text",
    [
        "x = torch.rand(n, m)\ny = torch.cdist(x, x)\n",  # sizes of which nothing is said
        "x = torch.rand(10, 3)\ny = f(x)\n" * 2 + "z = torch.cdist(y, y)\n",
        "print('torch.rand(5, 5)')\n",
        "batch_size = 64\n",
        "a, b = torch.rand(10, 4)\nc = a @ b\n",
        "x = torch.zeros(10, 10)\ny = x[mask]\nz = y @ y\n",
    ],
)
def test_what_no_figure_tells_is_not_made_up(text: str) -> None:
    assert not [made for made in shapes(text) if made[0] not in ("array", "result")]


@for_each(
    "text",
    [
        "x = " + "f(size=" * 60 + "1" + ")" * 60,
        "x = " + "+".join(["1"] * 5000),
        "x = " + "-" * 3000 + "1",
        "x = torch.rand(2**1000000, 10**30, 1e400)\nx.permute(0)\n",
        "x = torch.zeros(0)\nx.permute(0)\nx.view(-1, -1)\nx.unsqueeze(99)\nx[None, None, 0, 5]\n",
        "c = nn.Conv2d(0, 0, 0, stride=0)\nc(torch.rand(1, 1, 1, 1))\nx = 1 // 0\n",
        "a = torch.rand(3, 3)\n" + "torch.einsum('" + ",".join(["ij"] * 40) + "', " + ", ".join(["a"] * 40) + ")\n",
        "v = torch.rand(99)\n" + "jax.vmap(f)(v)\n" * 3000,
        "\x00 = (",
    ],
)
def test_a_strange_script_is_read_within_limits(text: str) -> None:
    assert len(tensors(text)) < 100_000
