local Dataset() = { kind: 'tfrecord', sources: ['/d/*.tfrecord'] };
{
  model: { type: "GPT2", n_ctx: 1024, n_embd: 1024, n_head: 16, n_layer: 24 },
  trainer: { train_batch_size: 20, steps: 300000, optimizer: { type: "adafactor", learning_rate: 1e-3 } },
  infeed: { batch_size: 20, max_sequence_length: 1024, dataset: Dataset() },
}
