camera = {
  model = "BFS-U3-51S5",
  resolution = { width = 2448, height = 2048 },
  batch_size = 16,
  gain = 3.5,
  device = 0,
  num_threads = 2,
}
