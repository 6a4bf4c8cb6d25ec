"""Six diagnoses made by hand, for the snapshots of the renderers: each shows something that the others do not."""

from __future__ import annotations

from diagnose.adapters.formats.settings import Document, Entry
from diagnose.budget.model.ledger import Attribution, Host, Ledger, Moment, Term
from diagnose.decide.verdict import Judgement
from diagnose.decide.verdict import Verdict as Ruling
from diagnose.diagnosis import Diagnosis, Verdict
from diagnose.facts import Fact, Input, Notice, Witness
from diagnose.parse.model.event import Event, Frame, OtherProcess
from diagnose.phrases import Text, same
from diagnose.plan.remedies.remedy import Edit, Outcome, Plan, Price, Question, Rejected, Remedy, Rung, Unsettled
from diagnose.units import Size, Version

GIB = 2**30


def printed(text: str) -> Size:
    digits, unit = text.split()
    size = Size.printed(digits, unit)
    assert size is not None
    return size


def term(key: str, en: str, zh: str, group: str, symbols: str, numbers: str, low: int | None = None) -> Term:
    count = int(eval(numbers))  # figures written below
    size = Size.exactly(count) if low is None else Size.between(low, count, count)
    return Term(key, Text(en, zh), group, size, symbols, numbers, "docs/memory.md")


def log(line: int, text: str) -> Witness:
    return Witness("error.log", line, 1, text)


def ruling(rule: str, cause: str, outcome: str, title: Text, explanation: Text, **more: object) -> Ruling:
    values: dict[str, object] = {
        "deciding": "log.requested > log.free",
        "missing": None,
        "accounts_for": None,
        "also_true": False,
        "evidence": (),
        "remedies": (),
        "url": "",
        **more,
    }
    return Ruling(rule=rule, cause=cause, outcome=outcome, title=title, explanation=explanation, **values)  # type: ignore[arg-type]


MESSAGE = (
    "[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.64 GiB. "
    "GPU 3 has a total capacity of 31.74 GiB of which 1.41 GiB is free."
)


def dpo_logits() -> Diagnosis:
    """A ledger that agrees, a later peak, a plan with an edit and a variable, advice rejected."""
    event = Event(
        family="torch_cuda",
        exception="torch.OutOfMemoryError",
        rank=3,
        ranks=(3, 6),
        gpu=3,
        step=0,
        phase="loss",
        requested=printed("4.64 GiB"),
        capacity=printed("31.74 GiB"),
        free=printed("1.41 GiB"),
        process_in_use=printed("30.26 GiB"),
        allocated=printed("23.51 GiB"),
        reserved_unallocated=printed("5.51 GiB"),
        frames=(Frame("torch/nn/functional.py", 3104, "cross_entropy"),),
        count=2,
        members=(
            Event(
                family="torch_cuda", exception="torch.OutOfMemoryError", rank=6, gpu=6, phase="loss", evidence=(log(134, "[rank6]: ..."),)
            ),
        ),
        evidence=(log(84, MESSAGE),),
    )
    echo = Event(
        family="other", exception="SIGTERM", consequence_of=0, evidence=(log(136, "W0206 Sending process 41 closing signal SIGTERM"),)
    )
    states = (
        term("weights", "policy weights, 16-bit, sharded", "策略模型权重（16 位，切分）", "weights", "2*P/N", "2*8291375616//8"),
        term("grads", "gradient partition, 16-bit", "梯度分片（16 位）", "gradients", "2*Pt/N", "2*7615616512//8"),
        term("master", "fp32 master weights, sharded", "fp32 主权重（切分）", "optimizer_states", "4*Pt/N", "4*7615616512//8"),
        term("reference", "reference model, 16-bit, sharded", "参考模型（16 位，切分）", "extra_models", "2*P/N", "2*8291375616//8"),
        term("bucket", "reduce bucket", "归约桶", "comm_buffers", "2*reduce_bucket_size", "2*500000000"),
        term(
            "live",
            "gathered parameters kept",
            "保留的已聚合参数",
            "comm_buffers",
            "2*stage3_max_live_parameters",
            "2*1000000000",
            1089994752,
        ),
        term("checkpoints", "one hidden state per layer", "每层保存一个隐藏状态", "activations", "2*h*L*T", "2*3584*28*8192"),
        term(
            "stem", "embedding output, final norm, head input", "词嵌入输出、末层归一化与输出头输入", "activations", "8*h*T", "8*3584*8192"
        ),
        term("mask", "4D attention mask", "4D 注意力掩码", "activations", "2*b*s*s", "2*2*4096*4096"),
    )
    logits = term("logits", "fp32 logits of chosen + rejected", "chosen + rejected 的 fp32 logits", "logits", "4*T*V", "4*8192*152064")
    shifted = term("shifted", "shifted copy of the fp32 logits", "fp32 logits 的移位副本", "logits", "4*2*(s-1)*V", "4*2*4095*152064")
    moments_term = term("moments", "Adam moments, sharded", "Adam 动量（切分）", "optimizer_states", "8*Pt/N", "8*7615616512//8")
    five = term("five", "five fp32 logits blocks", "五个 fp32 logits 块", "logits", "5*4*2*s*V", "5*4*2*4096*152064")
    ledger = Ledger(
        role="train",
        gpus=8,
        moments=(Moment("forward_end", (*states, logits, shifted)), Moment("reference_forward", (*states, moments_term, five))),
        capacity=printed("31.74 GiB"),
        usable=Size.between(int(30.42 * GIB), int(30.44 * GIB), int(30.43 * GIB)),
        failing="forward_end",
        observed=printed("23.51 GiB"),
    )
    softmax = Text("the log-softmax of the fp32 logits, chosen + rejected", "chosen + rejected 的 fp32 logits 的 log-softmax")
    claims = (
        Attribution(0, "log_softmax", softmax, "logits", "2*b*(s-1)*V*4", "2*(4096-1)*152064*4", 4981616640, 4982833152, True, 2, True),
    )
    fires = ruling(
        "logits_of_pairs",
        "logits",
        "fires",
        Text("The logits of chosen and rejected fill the card", "chosen 与 rejected 的 logits 占满显存"),
        Text(
            "Three fp32 blocks of [8192 tokens x 152064 words] coexist in the loss: 13.92 GiB.",
            "计算损失时同时存在三个 [8192 token x 152064 词表] 的 fp32 块：13.92 GiB。",
        ),
        accounts_for=Size.exactly(14946066432),
        evidence=(log(84, MESSAGE), Witness("qwen2vl_dpo.yaml", 19, 1, "cutoff_len: 4096", "cutoff_len")),
        remedies=("lower_seq_len",),
        url="https://github.com/hiyouga/LLaMA-Factory/issues/6800",
    )
    fragmented = ruling(
        "fragmentation",
        "fragmentation",
        "fires",
        Text("Free blocks are scattered", "显存碎片"),
        Text(
            "5.51 GiB are reserved and unused; with the 1.41 GiB free they would hold this one block.",
            "有 5.51 GiB 已保留未使用，加上空闲的 1.41 GiB 本可放下这一块。",
        ),
        also_true=True,
        accounts_for=printed("5.51 GiB"),
        evidence=(log(84, MESSAGE),),
    )
    shorter = Remedy(
        "lower_seq_len",
        "lower_seq_len",
        Text("Shorten the sequences to 1536 tokens", "把截断长度降到 1536"),
        Text("Every logits block shrinks with the length.", "每个 logits 块都随长度缩小。"),
        Size.exactly(int(15.65 * GIB)),
        Size.exactly(int(28.43 * GIB)),
        "yes",
        Price("change", "faster", "key"),
        (Edit("qwen2vl_dpo.yaml", "cutoff_len", "4096", "1536"),),
        (),
        None,
        ("https://github.com/hiyouga/LLaMA-Factory/issues/6800",),
        "",
        (("train.max_seq_len", 1536),),
    )
    offload = Remedy(
        "zero_offload_optimizer",
        "zero_offload_optimizer",
        Text("Keep the optimizer in host memory", "把优化器卸载到主机内存"),
        Text("States leave the card, logits do not.", "状态移出显存，logits 不会。"),
        Size.exactly(int(12.41 * GIB)),
        Size.exactly(int(31.67 * GIB)),
        "no",
        Price("keep", "slower", "file", Size.exactly(int(99.3 * GIB))),
        (Edit("qwen2vl_dpo.yaml", "deepspeed", "ds_z3_config.json", "ds_z3_offload_config.json"),),
        (),
        None,
        (),
        "",
    )
    plan = Plan(
        ("lower_seq_len",),
        (Edit("qwen2vl_dpo.yaml", "cutoff_len", "4096", "1536"),),
        ("PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",),
        Size.exactly(int(28.43 * GIB)),
        Size.exactly(int(2.0 * GIB)),
        "yes",
        (Rung("train.max_seq_len", 1536, 1792, Size.exactly(int(29.9 * GIB))),),
    )
    rejected = (
        Rejected("bf16", "bf16", Text("the V100 (compute capability 7.0) has no native bf16", "V100（计算能力 7.0）没有原生 bf16")),
        Rejected("flash_attention", "flash_attention", Text("needs compute capability 8.0", "需要计算能力 8.0")),
        Rejected("lower_micro_batch", "lower_micro_batch", Text("it is 1 already", "已经是 1")),
        Rejected("zero3", "zero3", Text("already in effect; it shards states, not logits", "已生效；它切分状态，不切分 logits")),
        Rejected("more_gpus", "more_gpus", Text("one pair's logits are on one card", "一对样本的 logits 只在一张卡上")),
        Rejected("kill_other_process", "kill_other_process", Text("only 0.07 GiB are unaccounted", "归属不明的仅 0.07 GiB")),
    )
    questions = (
        Question(
            "data.longest_sample",
            Text("How many pairs would 1536 tokens cut?", "1536 会截断多少样本？"),
            Text("Tokenise the data set and print the maximum.", "对数据集分词并查看最大长度。"),
            "--set data.longest_sample=N",
        ),
    )
    return Diagnosis(
        Verdict(
            "oom",
            "torch_cuda",
            "loss",
            Text(
                "GPU 3 (rank 3) ran out of memory in the loss: 4.64 GiB asked for (the log-softmax of the fp32 logits), 1.41 GiB free. "
                "Three fp32 blocks of [8192 tokens x 152064 words] coexist in the loss: 13.92 GiB.",
                "GPU 3（rank 3）在计算损失时显存不足：申请 4.64 GiB（fp32 logits 的 log-softmax），空闲 1.41 GiB。"
                "计算损失时同时存在三个 [8192 token x 152064 词表] 的 fp32 块：13.92 GiB。",
            ),
            0,
        ),
        (Input("error.log", "log", 18211, 166, "utf-8"), Input("qwen2vl_dpo.yaml", "llamafactory", 1101, 40, "utf-8")),
        (event, echo),
        (
            Fact("log.requested", printed("4.64 GiB"), "log", log(84, MESSAGE)),
            Fact("version.torch", Version("2.5.1+cu124"), "log", log(11, "PyTorch version: 2.5.1+cu124 (GPU)")),
            Fact("train.max_seq_len", 4096, "config", Witness("qwen2vl_dpo.yaml", 19, 13, "4096", "cutoff_len")),
            Fact("alloc.expandable_segments", False, "default", Witness("default", text="torch 2.5.1")),
            Fact("data.longest_sample", None, "derived", Witness("derived", text="nothing says")),
            Fact(
                "log.not_torch",
                Size.between(int(1.23 * GIB), int(1.25 * GIB)),
                "derived",
                Witness("derived", text="in use - allocated - unallocated"),
            ),
            Fact("lora.dropout", 0.05, "config", Witness("qwen2vl_dpo.yaml", 21, 1, "0.05", "lora_dropout")),
        ),
        claims,
        (ledger,),
        Judgement((fires, fragmented), (), (fires, fragmented)),
        Outcome((shorter, offload), rejected, plan, questions),
        (),
        (
            Document(
                "qwen2vl_dpo.yaml",
                "llamafactory",
                "yaml",
                "cutoff_len: 4096\n",
                (Entry("cutoff_len", "4096", 12, 16, 1, 13, ("train.max_seq_len",)),),
            ),
        ),
    )


def ppo_states() -> Diagnosis:
    """Several roles, host memory, a flag without a value, a driver that prints no rank."""
    event = Event(
        family="torch_cuda",
        exception="torch.cuda.OutOfMemoryError",
        gpu=0,
        pid=88211,
        role="actor",
        phase="loss",
        requested=printed("3.12 GiB"),
        capacity=printed("79.15 GiB"),
        free=printed("1.17 GiB"),
        process_in_use=printed("77.97 GiB"),
        allocated=printed("75.90 GiB"),
        reserved_unallocated=printed("450.56 MiB"),
        other_processes=(OtherProcess(88211, printed("77.97 GiB")),),
        evidence=(
            log(
                47, "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.12 GiB. GPU \0 has a total capacity of 79.15 GiB"
            ),
        ),
    )
    terms = (
        term("weights", "policy weights, bf16, sharded", "策略模型权重（bf16，切分）", "weights", "2*P/N", "2*16375728128//4"),
        term("grads", "gradient partition, fp32", "梯度分片（fp32）", "gradients", "4*Pt/N", "4*16375728128//4"),
        term("master", "fp32 master partition", "fp32 主权重分片", "optimizer_states", "4*Pt/N", "4*16375728128//4"),
        term("moments", "Adam moments", "Adam 动量", "optimizer_states", "8*Pt/N", "8*16375728128//4"),
        term("bucket", "reduce bucket, bf16", "归约桶（bf16）", "comm_buffers", "2*bucket", "2*500000000"),
        term("live", "gathered parameters kept", "保留的已聚合参数", "comm_buffers", "2*live", "2*1000000000"),
        term("logits", "fp32 logits", "fp32 logits", "logits", "4*T*V", "4*8192*102400"),
    )
    more = term("softmax", "log-softmax and its gradient", "log-softmax 及其梯度", "logits", "2*4*T*V", "2*4*8192*102400")
    room = Size.exactly(int(77.51 * GIB))
    actor = Ledger(
        "actor",
        4,
        (Moment("forward_end", terms), Moment("loss_backward", (*terms, more))),
        printed("79.15 GiB"),
        room,
        "forward_end",
        printed("75.90 GiB"),
        Host(
            (
                term(
                    "offloaded", "gradients, master weights and moments", "梯度、主权重与动量", "optimizer_states", "16*P", "16*16375728128"
                ),
            )
        ),
    )
    critic = Ledger(
        "critic",
        2,
        (Moment("layer_backward", (term("states", "critic states", "critic 状态", "optimizer_states", "18*Pc/2", "18*7504924672//2"),)),),
        printed("79.15 GiB"),
        room,
    )
    cause = ruling(
        "states_fill_the_card",
        "optimizer_states",
        "fires",
        Text("Weights, gradients and optimizer states fill the card", "权重、梯度与优化器状态占满显存"),
        Text(
            "18 bytes x 16,375,728,128 parameters / 4 cards = 68.63 GiB on every actor card.",
            "18 字节 x 16,375,728,128 参数 / 4 卡 = 每张 actor 卡 68.63 GiB。",
        ),
        accounts_for=Size.exactly(18 * 16375728128 // 4),
        evidence=(log(12, "MA 39.06 GB"), Witness("train_ppo.sh", 28, 1, "", "--zero_stage")),
    )
    also = ruling(
        "logits",
        "logits",
        "fires",
        Text("The failed block is logits", "失败的块是 logits"),
        Text("9.38 GiB of them at the peak.", "峰值时共 9.38 GiB。"),
        also_true=True,
    )
    unknown = ruling(
        "leak", "leak", "unknown", Text("Memory grows step by step", "显存逐步增长"), same(""), missing="log.step", deciding="log.step > 10"
    )
    open_ = Unsettled("leak", unknown.title, "log.step", Text("give the log from the start of training", "提供从训练开始的日志"))
    remedy = Remedy(
        "zero_offload_optimizer",
        "zero_offload_optimizer",
        Text("Keep the optimizer in host memory", "把优化器卸载到主机内存"),
        Text("Gradients, masters and moments leave the card.", "梯度、主权重与动量移出显存。"),
        Size.exactly(16 * 16375728128 // 4),
        Size.exactly(int(20.79 * GIB)),
        "yes",
        Price("keep", "slower", "flag", Size.exactly(16 * 16375728128)),
        (Edit("train_ppo.sh", "--adam_offload", None, ""),),
        (),
        None,
        (),
        "",
    )
    smaller = Remedy(
        "lower_micro_batch",
        "lower_micro_batch",
        Text("Micro batch 1, accumulation 4", "微批 1，累积 4"),
        Text("The global batch stays 16.", "全局批量仍为 16。"),
        Size.exactly(int(6.65 * GIB)),
        Size.exactly(int(75.15 * GIB)),
        "unlikely",
        Price("keep", "slower", "flag"),
        (Edit("train_ppo.sh", "--micro_train_batch_size", "4", "1"),),
        (),
        None,
        (),
        "",
    )
    plan = Plan(("zero_offload_optimizer",), remedy.edits, (), Size.exactly(int(20.79 * GIB)), Size.exactly(int(56.72 * GIB)), "yes")
    ram = Question(
        "host.ram",
        Text("The plan takes 244 GiB of host memory.", "该方案需要 244 GiB 主机内存。"),
        Text("free -g", "free -g"),
        "--set host.ram=N",
    )
    return Diagnosis(
        Verdict(
            "oom",
            "torch_cuda",
            "loss",
            Text(
                "GPU 0, actor ran out of memory in the loss: 3.12 GiB asked for, 1.17 GiB free.",
                "GPU 0（actor）在计算损失时显存不足：申请 3.12 GiB，空闲 1.17 GiB。",
            ),
            0,
        ),
        (Input("error.log", "log", 9001, 60, "utf-8", ("device index printed as a raw byte",)),),
        (event,),
        (),
        (),
        (actor, critic),
        Judgement((cause, also), (unknown,), (cause, also, unknown), (same("broken_rule"),)),
        Outcome((remedy, smaller), (Rejected("zero3", "zero3", Text("already in effect", "已生效")),), plan, (ram,), (open_,)),
    )


def length_ignored() -> Diagnosis:
    """A key that the framework does not read, wide figures, no plan, notices, a ledger above what was allocated."""
    line = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB."
    event = Event(
        family="torch_cuda",
        exception="torch.OutOfMemoryError",
        gpu=2,
        phase="backward",
        requested=printed("20.00 MiB"),
        capacity=printed("79.11 GiB"),
        free=printed("6.75 MiB"),
        allocated=printed("76.40 GiB"),
        reserved_unallocated=printed("1.02 GiB"),
        evidence=(log(203, line),),
    )
    wide = Term(
        "activations",
        Text("activations of all layers", "各层激活值"),
        "activations",
        Size.between(int(80.1 * GIB), int(95.7 * GIB), int(88.4 * GIB)),
        "34*s*b*h*L",
        "94919777484",
        "docs/memory.md",
    )
    ledger = Ledger(
        "train",
        8,
        (Moment("layer_backward", (wide,)),),
        printed("79.11 GiB"),
        Size.exactly(int(77.4 * GIB)),
        "layer_backward",
        printed("76.40 GiB"),
        unknown=("model.attention", "data.longest_sample"),
        complete=False,
    )
    cause = ruling(
        "key_not_read",
        "config_not_effective",
        "fires",
        Text("`sequence_length` is not a key that Axolotl reads", "Axolotl 不读取 `sequence_length`"),
        Text("The key is `sequence_len`; without it the default 512 holds.", "正确的键是 `sequence_len`；缺省为 512。"),
        evidence=(Witness("train.yaml", 9, 1, "sequence_length: 4096", "sequence_length"),),
    )
    guess = ruling(
        "no_checkpointing",
        "activations",
        "likely",
        Text("Activations of every layer are kept", "每层激活值都被保留"),
        Text("Gradient checkpointing is absent, presuming that the file is what ran.", "未启用梯度检查点（假定配置即实际运行的配置）。"),
    )
    remedy = Remedy(
        "gradient_checkpointing",
        "gradient_checkpointing",
        Text("Recompute activations in backward", "启用梯度检查点"),
        Text("One hidden state per layer is kept.", "每层只保留一个隐藏状态。"),
        Size.between(int(9 * GIB), int(18 * GIB), int(14 * GIB)),
        None,
        "unknown",
        Price("keep", "slower", "key"),
        (Edit("train.yaml", "gradient_checkpointing", None, "true"),),
        (),
        None,
        (),
        "",
    )
    fix = Remedy(
        "fix_config_not_applied",
        "fix_config_not_applied",
        Text("Name the key as Axolotl does", "改用 Axolotl 的键名"),
        Text("Then the length is what the file says.", "这样长度才与配置一致。"),
        None,
        None,
        "unknown",
        Price("may_change", "same", "key"),
        (Edit("train.yaml", "sequence_length", "4096", "4096", "sequence_len"),),
        (),
        Text("Then run `axolotl preprocess train.yaml` again.", "然后重新执行 `axolotl preprocess train.yaml`。"),
        (),
        "",
    )
    notices = (
        Notice(
            "warning",
            "unknown_key",
            Text("`sequence_length` is not read; did you mean `sequence_len`?", "未读取 `sequence_length`；是否想写 `sequence_len`？"),
            Witness("train.yaml", 9, 1, "", "sequence_length"),
        ),
        Notice("error", "unusable_input", Text("ds.json: line 3, column 5: not JSON", "ds.json：第 3 行第 5 列：不是 JSON")),
        Notice("info", "presumed", Text("the card was inferred from its capacity", "显卡型号由容量推断")),
    )
    questions = tuple(
        Question(name, Text(f"{name} decides.", f"{name} 起决定作用。"), Text("Look.", "查看。"), f"--set {name}=X")
        for name in ("model.attention", "data.longest_sample", "version.axolotl")
    )
    return Diagnosis(
        Verdict(
            "oom",
            "torch_cuda",
            "backward",
            Text(
                "GPU 2 ran out of memory in the backward pass: 20.00 MiB asked for, 6.75 MiB free.",
                "GPU 2 在反向时显存不足：申请 20.00 MiB，空闲 6.75 MiB。",
            ),
            0,
        ),
        (),
        (event,),
        (),
        (),
        (ledger,),
        Judgement((cause, guess), (), (cause, guess)),
        Outcome((fix, remedy), (), None, questions),
        notices,
    )


def host_kill() -> Diagnosis:
    """Killed without a message: suspected, no ledger, a command instead of an edit."""
    event = Event(family="host_oom_killer", exception="Killed", fatal=True, rank=1, phase="dataset", evidence=(log(12, "Killed"),))
    cause = ruling(
        "exit_137",
        "host_ram",
        "likely",
        Text("The kernel ended the process", "进程被内核终止"),
        Text("Exit code 137 with no other message.", "退出码 137，且无其他信息。"),
        evidence=(log(12, "Killed"),),
    )
    remedy = Remedy(
        "fewer_workers",
        "fewer_workers",
        Text("Fewer data workers", "减少数据加载进程"),
        Text("Each worker holds a copy.", "每个进程各有一份副本。"),
        None,
        None,
        "unknown",
        Price("keep", "slower", "key"),
        (),
        (),
        Text(
            "Set dataloader_num_workers to 0 and look at `dmesg -T | grep -i oom`.",
            "把 dataloader_num_workers 设为 0，并查看 `dmesg -T | grep -i oom`。",
        ),
        (),
        "",
    )
    return Diagnosis(
        Verdict(
            "suspected",
            "host_oom_killer",
            "dataset",
            Text(
                "rank 1 was killed in data loading. The log does not say why; dmesg on the node may.",
                "rank 1 在数据加载时被杀掉。日志没写原因，到节点上看 dmesg 多半就知道。",
            ),
            0,
        ),
        (Input("error.log", "log", 400, 12, "utf-8"),),
        (event,),
        judgement=Judgement((cause,), (), (cause,)),
        outcome=Outcome((remedy,)),
    )


def lookalike() -> Diagnosis:
    """No memory failure, and a log written to harm its reader: escapes, Markdown, direction marks, secrets."""
    hostile = (
        "\x1b[2J\x1b]0;owned\x07<img src=x> [click](http://evil.example) @everyone `rm -rf` \u202e| **bold** "
        "hf_abcdefghijklmnopqrstuvwxyzABCDEFGH alice@example.com"
    )
    event = Event(
        family="triton_shared",
        exception=hostile,
        phase="compile",
        host="gpu-node-17.internal",
        evidence=(Witness("/home/alice/run/error.log", 7, 1, hostile),),
    )
    notice = Notice(
        "warning",
        "not_understood",
        Text(f"seen, not understood: {hostile}", f"看到但未能理解：{hostile}"),
        Witness("/home/alice/run/error.log", 7, 1, hostile),
    )
    return Diagnosis(
        Verdict(
            "lookalike",
            "triton_shared",
            "compile",
            Text(f"This only looks like a memory failure: {hostile}.", f"看起来像显存不足，其实不是：{hostile}。"),
            0,
        ),
        (Input("/home/alice/run/error.log", "log", 900, 9, "utf-8"),),
        (event,),
        notices=(notice,),
    )


def before_a_run() -> Diagnosis:
    """`check`: a ledger without a log, which fits."""
    terms = (
        term("weights", "weights, bf16", "权重（bf16）", "weights", "2*P", "2*3212749824"),
        term("adapters", "LoRA weights, gradients and states", "LoRA 权重、梯度与状态", "optimizer_states", "16*Pl", "16*24313856"),
        term(
            "activations",
            "checkpoints and one layer",
            "检查点与单层激活值",
            "activations",
            "2*h*L*T + layer",
            "2*3072*28*4096 + 2147483648",
        ),
    )
    ledger = Ledger("train", 1, (Moment("layer_backward", terms),), printed("23.64 GiB"), Size.exactly(int(23.0 * GIB)))
    return Diagnosis(
        Verdict(
            "none",
            None,
            None,
            Text(
                "It needs 9.00 GiB at the backward pass of a layer; the card can give 23.00 GiB.",
                "按账目，层反向时需要 9.00 GiB，显卡可用 23.00 GiB。",
            ),
            None,
        ),
        (Input("lora.yaml", "axolotl", 300, 12, "utf-8"),),
        ledgers=(ledger,),
        asked="check",
    )


SAMPLES = {sample.__name__: sample for sample in (dpo_logits, ppo_states, length_ignored, host_kill, lookalike, before_a_run)}
