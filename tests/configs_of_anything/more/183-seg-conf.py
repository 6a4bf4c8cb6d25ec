conf = dict(
  env=dict(CUDA_VISIBLE_DEVICES='0,1', mode='train', cuda=True, wandb=False, saved_model_directory='ckpt', epoch=400),
  model=dict(name='Segformer_B2', num_class=12, in_channel=3, saved_ckpt=''),
  dataloader_train=dict(name='ImagePairs', mode='train', data_cache=False, batch_size=14, input_size=[640, 640], workers=6,
    augmentations=dict(transform_rand_crop=256)),
  dataloader_valid=dict(name='ImagePairs', mode='valid', batch_size=7, input_size=[640, 640], workers=6),
  criterion=dict(name='DiceLoss'),
  optimizer=dict(name='AdamW', lr=6e-4, weight_decay=0.01, scheduler=dict(name='Cosine')),
)
