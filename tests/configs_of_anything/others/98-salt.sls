minecraft:
  user: mc
  max_memory: 8G
  workers: 2
  world:
    size: 4096
    checkpoint: 600
    max_length: 256
    device: eth0
