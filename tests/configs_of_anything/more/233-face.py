from easydict import EasyDict as edict
config = edict()
config.margin_list = (1.0, 0.0, 0.4)
config.network = "vit_b"
config.resume = False
config.embedding_size = 512
config.fp16 = True
config.batch_size = 196
config.optimizer = "adamw"
config.lr = 0.001
config.num_epoch = 40
config.gradient_acc = 2
config.num_workers = 7
