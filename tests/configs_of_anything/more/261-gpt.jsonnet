local base = { seq_len: 1536, lr: 2e-4 };
local bs = 10;
base + {
  model: "EleutherAI/pythia-1.4b",
  micro_batch: bs,
  grad_accum: 6,
  optim: { name: "adamw_8bit" },
  bf16: true,
}
