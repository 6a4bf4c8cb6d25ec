local CUDA_DEVICE =
  if std.parseInt(std.extVar("NUM_GPU")) == 0 then -1 else 0;
local bs = 48;
{
  "numpy_seed": 7, "pytorch_seed": 7,
  "dataset_reader": {"type": "semisup", "lazy": false, "sequence_length": 384, "token_indexers": {"tokens": {"type": "single_id"}}},
  "iterator": {"type": "basic", "batch_size": bs},
  "model": {"type": "classifier", "dropout": 0.4},
  "train_data_path": "data/train.jsonl",
  "trainer": {"cuda_device": CUDA_DEVICE, "num_epochs": 40, "optimizer": {"type": "adam", "lr": 0.0002}, "patience": 5},
}
